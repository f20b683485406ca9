"""Networks of ``adit train``, from weights to encoders and folders.

``transformer`` is the dual encoder of Chidambaram et al. 2019 (section 2.1) over SentencePiece,
with 8 heads, filters of 4 x D, and the mean over all positions. Norms precede the blocks.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from encoder import Encoder, Precision, checkpoint
from encoder.base import SAMPLE, BaseEncoder
from encoder.coverage import language_key
from encoder.laser.networks import BiLSTM, Tensors, Transformer
from encoder.network import NetworkEncoder, PreparedNetwork, SentenceTokenizer, prepare
from encoder.rows import Matrix
from encoder.sentence_networks import KINDS, SentenceNetwork
from encoder.tokenizer import Tokenizer, Tokens

Trainable = BiLSTM | Transformer | SentenceNetwork

ALL = ""  # the key of one network for all languages
BETWEEN = ":"  # separates a language and the name of its network's tensor
HEADS = 8
SETTINGS = {
    "sentemb_criterion": "mean",
    "activation_fn": "relu",
    "encoder_attention_heads": HEADS,
    "encoder_normalize_before": True,
}


def build_network(architecture: str, tensors: Tensors, *, dropout: float = 0.0) -> Trainable:
    """Build a network of an architecture of ``adit train``, except ``bag``.

    ``tensors`` are its weights by name, and training drops the share ``dropout`` of activations.
    The result is in evaluation mode, without gradients, and shares contiguous float32 tensors.

    Raises:
        ValueError: The architecture is unknown, or a tensor is missing or does not fit.
    """
    if architecture == "bilstm":
        return BiLSTM(tensors, dropout=dropout)
    if architecture == "transformer":
        return Transformer(tensors, SETTINGS, dropout=dropout)
    if architecture in KINDS:
        return KINDS[architecture].build(tensors, dropout=dropout)
    raise ValueError(f"has the unknown architecture {architecture!r}")


class EndingTokenizer(SentenceTokenizer):
    """A tokeniser that adds an end token, of the next free id."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def encode(self, sentences: Sequence[str]) -> Tokens:
        """Return the ids of each sentence's pieces, then that of its end."""
        tokens = self._tokenizer.encode(sentences)
        ids = np.insert(tokens.ids, tokens.offsets[1:], len(self._tokenizer))
        return Tokens(ids=ids, offsets=tokens.offsets + np.arange(len(tokens.offsets)))


class TrainedNetwork(NetworkEncoder):
    """An encoder that ``adit train`` wrote, from which training can start.

    ``network`` has embeddings of ``tokenizer``'s pieces, then of an end token. ``tokenizer_model``
    is the serialised tokeniser, and ``weights`` returns tensors as ``PreparedNetwork.weights``.
    """

    def __init__(self, *, name: str, tokenizer: Tokenizer, network: PreparedNetwork) -> None:
        super().__init__(name=name, tokenizer=EndingTokenizer(tokenizer), network=network)
        self.tokenizer_model = tokenizer.model
        self.weights = network.weights


def save_networks(
    folder: Path,
    architecture: str,
    networks: Mapping[str, Trainable],
    *,
    tokenizer_model: bytes,
    facts: checkpoint.Facts,
) -> None:
    """Write an encoder of one network, or of one network per language.

    ``networks`` are by language, or one by the key "". ``facts`` are JSON values by name, for the
    configuration. Networks share no tensors. Errors of ``write_folder`` are raised.
    """
    first = next(iter(networks.values()))
    by_language = {"format": checkpoint.APART_FORMAT, "apart": list(networks)}
    config = {
        **({"format": checkpoint.NETWORK_FORMAT} if ALL in networks else by_language),
        "architecture": architecture,
        "vocabulary": first.vocabulary,
        "dim": first.dim,
        "facts": facts,
    }
    tensors = {
        f"{language}{BETWEEN}{name}".removeprefix(BETWEEN): tensor
        for language, network in networks.items()
        for name, tensor in network.state_dict().items()
    }
    checkpoint.write_folder(folder, config, tokenizer_model, save(tensors))


def load_networks(folder: Path, *, name: str, precision: Precision) -> Encoder:
    """Load an encoder that ``save_networks`` wrote.

    The encoder's name is ``name``, a hash of the files and the precision, which all networks share.
    It is an ``ApartEncoder`` with a network per language, or else a ``TrainedNetwork``.

    Raises:
        ValueError: A file is missing or damaged, or the precision does not fit.
    """
    config, pieces, weights = checkpoint.read_folder(folder)
    parts: dict[str, dict[str, Tensor]] = {language: {} for language in config.get("apart", [ALL])}
    tokenizer = EndingTokenizer(pieces)
    sample = tokenizer.encode(SAMPLE)
    try:
        for full_key, tensor in load(weights).items():
            language, _, key = full_key.rpartition(BETWEEN)
            parts.setdefault(language, {})[key] = tensor
        networks = {key: _saved_network(config, parts[key], len(pieces)) for key in parts}
    except (SafetensorError, ValueError) as error:
        raise ValueError(
            f"encoder {folder}: {checkpoint.WEIGHTS} {error}; copy the folder again, or update Adit"
        ) from error
    try:
        prepared = {key: prepare(net, precision, sample) for key, net in networks.items()}
        if len({net.precision for net in prepared.values()}) > 1:  # not all are fast in the same
            prepared = {key: prepare(net, "float32", sample) for key, net in networks.items()}
    except ValueError as error:
        raise ValueError(f"encoder {folder}: {error}") from error
    full_name = f"{name}@{config['sha256'][:12]}-{next(iter(prepared.values())).name}"
    if ALL in prepared:
        return TrainedNetwork(name=full_name, tokenizer=pieces, network=prepared[ALL])
    encoders = {
        language: NetworkEncoder(name=f"{full_name}/{language}", tokenizer=tokenizer, network=net)
        for language, net in prepared.items()
    }
    return ApartEncoder(name=full_name, encoders=encoders)


def _saved_network(config: checkpoint.Facts, tensors: Tensors, pieces: int) -> Trainable:
    network = build_network(config.get("architecture", "unnamed"), tensors)
    if network.vocabulary != pieces + 1:
        raise ValueError(
            f"has {network.vocabulary} vectors, but {checkpoint.TOKENIZER} needs {pieces + 1}, so "
            "they are from different trainings"
        )
    return network


class ApartEncoder(BaseEncoder):
    """An encoder with one network per language, in one space.

    ``for_language`` chooses from ``encoders``, by language. ``encode`` always raises ValueError.
    """

    def __init__(self, *, name: str, encoders: Mapping[str, Encoder]) -> None:
        self.name, self._encoders, self._languages = name, encoders, ", ".join(encoders)
        first = next(iter(encoders.values()))
        self.dim, self.precision = first.dim, first.precision

    def for_language(self, language: str | None) -> Encoder:  # type: ignore[override]
        """Return the encoder of a language (ISO 639), or this one for None.

        Raises:
            ValueError: The encoder has no network for the language.
        """
        if language is None:
            return self
        known = {language_key(name): part for name, part in self._encoders.items()}
        encoder = self._encoders.get(language) or known.get(language_key(language))
        if encoder is None:
            raise ValueError(
                f"encoder {self.name} has no network for {language}, only for {self._languages}; "
                "use another encoder"
            )
        return encoder

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> Matrix:
        raise ValueError(
            f"encoder {self.name} has one network for each of {self._languages}; pass the "
            "language of the text (--src-lang, --tgt-lang or --lang)"
        )
