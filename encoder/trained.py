"""Networks that train-encoder makes: how they are built, as encoders, and on disk.

``transformer`` is the dual encoder of Chidambaram et al. 2019 (section 2.1) over SentencePiece: 8
heads, filters of 4 x D, the mean over all positions; norms come before the blocks.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from encoder import Encoder, Precision, checkpoint
from encoder.base import SAMPLE, BaseEncoder
from encoder.coverage import individual
from encoder.laser.networks import BiLSTM, Tensors, Transformer
from encoder.network import NetworkEncoder, Ready, SentenceTokenizer, ready
from encoder.sentence_networks import KINDS, SentenceNetwork
from encoder.tokenizer import Tokenizer, Tokens

Trainable = BiLSTM | Transformer | SentenceNetwork
Networks = Mapping[str, Trainable]  # by language, or one for ``ALL``

ALL = ""  # what one network for all languages is called
BETWEEN = ":"  # a language and the name of a tensor of its network
HEADS = 8
SETTINGS = {
    "sentemb_criterion": "mean",
    "activation_fn": "relu",
    "encoder_attention_heads": HEADS,
    "encoder_normalize_before": True,
}


def build_network(architecture: str, tensors: Tensors, *, dropout: float = 0.0) -> Trainable:
    """Build the network of these weights; a ValueError says what is wrong with these."""
    if architecture == "bilstm":
        return BiLSTM(tensors, dropout=dropout)
    if architecture == "transformer":
        return Transformer(tensors, SETTINGS, dropout=dropout)
    if architecture in KINDS:
        return KINDS[architecture].build(tensors, dropout=dropout)
    raise ValueError(f"has an unknown architecture {architecture!r}")


class EndingTokenizer(SentenceTokenizer):
    """Ends each sentence with a token of its own, so that none is empty; its id is the last."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def encode(self, sentences: Sequence[str]) -> Tokens:
        """Tokenise."""
        tokens = self._tokenizer.encode(sentences)
        ids = np.insert(tokens.ids, tokens.offsets[1:], len(self._tokenizer))
        return Tokens(ids=ids, offsets=tokens.offsets + np.arange(len(tokens.offsets)))


class TrainedNetwork(NetworkEncoder):
    """A network that train-encoder made, with what another training can begin with."""

    def __init__(self, *, name: str, tokenizer: Tokenizer, network: Ready) -> None:
        super().__init__(name=name, tokenizer=EndingTokenizer(tokenizer), network=network)
        self.tokenizer_model = tokenizer.model
        self.weights = network.weights  # all tensors, in the precision that it was loaded in


def save_networks(
    folder: Path,
    architecture: str,
    networks: Networks,
    *,
    tokenizer_model: bytes,
    facts: checkpoint.Facts,
) -> None:
    """Write networks; an encoder that was in ``folder`` is kept until this one is written."""
    from safetensors.torch import save

    first = next(iter(networks.values()))
    apart = {"format": checkpoint.APART_FORMAT, "apart": list(networks)}
    config = {
        **({"format": checkpoint.NETWORK_FORMAT} if ALL in networks else apart),
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
    """Load what ``save_networks`` wrote, all in one precision; its name has a hash of the files.

    A ValueError says what is wrong with a file, or that a network has no such precision.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    config, pieces, weights = checkpoint.read_folder(folder)
    own: dict[str, dict[str, Tensor]] = {language: {} for language in config.get("apart", [ALL])}
    tokenizer = EndingTokenizer(pieces)
    sample = tokenizer.encode(SAMPLE)
    try:
        for full, tensor in load(weights).items():
            language, _, part = full.rpartition(BETWEEN)
            own.setdefault(language, {})[part] = tensor
        networks = {each: _saved_network(config, own[each], len(pieces)) for each in own}
        chosen = {each: ready(one, precision, sample) for each, one in networks.items()}
        if len({one.precision for one in chosen.values()}) > 1:  # what is fast suits some of them
            chosen = {each: ready(one, "float32", sample) for each, one in networks.items()}
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"encoder {folder}: {checkpoint.WEIGHTS} {error}") from error
    full_name = f"{name}@{config['sha256'][:12]}-{next(iter(chosen.values())).precision}"
    if ALL in chosen:
        return TrainedNetwork(name=full_name, tokenizer=pieces, network=chosen[ALL])
    encoders = {
        language: NetworkEncoder(name=f"{full_name}/{language}", tokenizer=tokenizer, network=one)
        for language, one in chosen.items()
    }
    return ApartEncoder(name=full_name, encoders=encoders)


def _saved_network(config: checkpoint.Facts, tensors: Tensors, pieces: int) -> Trainable:
    network = build_network(config.get("architecture", "unnamed"), tensors)
    if network.vocabulary != pieces + 1:
        raise ValueError(
            f"has {network.vocabulary} vectors for {pieces} pieces and an end; weights and "
            "tokeniser are from different trainings"
        )
    return network


class ApartEncoder(BaseEncoder):
    """Networks that are a language's own, in one space; the language chooses which one encodes.

    Satisfies ``encoder.Encoder``, but that it must be told which: sentences of none have no vector.
    """

    def __init__(self, *, name: str, encoders: Mapping[str, Encoder]) -> None:
        self.name, self._encoders, self._languages = name, encoders, ", ".join(encoders)
        first = next(iter(encoders.values()))
        self.dim, self.precision = first.dim, first.precision

    def for_language(self, language: str | None) -> Encoder:  # type: ignore[override]
        """Return the encoder of a language; a ValueError says that it has none."""
        if language is None:
            return self
        known = {individual(name): own for name, own in self._encoders.items()}
        found = self._encoders.get(language) or known.get(individual(language))
        if found is None:
            raise ValueError(
                f"encoder {self.name} has no network for {language}; it has {self._languages}"
            )
        return found

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> NDArray[np.float32]:
        raise ValueError(
            f"encoder {self.name} has one network for each of {self._languages}; pass the "
            "language of the text (--src-lang, --tgt-lang or --lang)"
        )
