"""Networks in training, with sentences of different lengths in a batch."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from encoder import Encoder, trained
from encoder.bag.features import Features
from encoder.laser.networks import Tensors
from encoder.network import NetworkEncoder, PreparedNetwork
from encoder.tokenizer import Tokenizer, Tokens
from encoder.trained import build_network, save_networks
from encoder.training.architectures.model import Model, Trained
from encoder.training.data import LONGEST, Rows
from encoder.training.options import TrainingOptions


class SpelledEmbedding(nn.Embedding):
    """Embeddings of V pieces and an end token, which share n-gram vectors.

    A piece's vector is the mean of its own, at first ``weight`` (V + 1, D), and tanh(W s), where s
    is the sum of its n-grams' vectors (Chidambaram et al. 2019, section 2.1).
    """

    def __init__(self, weight: Tensor, features: Features) -> None:
        rows, dim = weight.shape
        super().__init__(rows, dim, _weight=weight.clone())
        self.ngrams = nn.Parameter(torch.randn(features.ngram_rows, dim) * weight.std())
        self.mixed = nn.Linear(dim, dim, bias=False)
        each_piece = Tokens(ids=np.arange(features.pieces, dtype=np.int32), offsets=np.arange(rows))
        numbers, words = features.split(each_piece)
        piece_rows = words.take(numbers.ids.astype(np.int64))
        ngrams = piece_rows.keep(piece_rows.ids >= features.pieces)
        offsets = np.append(ngrams.offsets, ngrams.offsets[-1])  # the end has no n-grams
        self._spelling = Tokens(ids=ngrams.ids - features.pieces, offsets=offsets)

    def forward(self, ids: Tensor) -> Tensor:
        """Embed piece ids, int64 of any shape (...), as vectors (..., D)."""
        distinct, inverse = torch.unique(ids, return_inverse=True)
        return self._embed(distinct)[inverse]

    def fold(self) -> Tensor:
        """Return the vectors of pieces and the end, (V + 1, D), without gradient."""
        with torch.no_grad():
            return self._embed(torch.arange(len(self.weight), device=self.weight.device))

    def _embed(self, pieces: Tensor) -> Tensor:
        spelling = self._spelling.take(pieces.cpu().numpy())
        parts = (torch.from_numpy(part).long() for part in (spelling.ids, spelling.offsets))
        ids, offsets = (part.to(pieces.device) for part in parts)
        sums = functional.embedding_bag(
            ids, self.ngrams, offsets, mode="sum", include_last_offset=True
        )
        return (self.weight[pieces] + torch.tanh(self.mixed(sums))) / 2


# A network embeds a batch in groups of similar lengths, each with padding of its own.
MAX_GROUPS = 16  # per batch
MIN_GROUP_SENTENCES = 32
EMBEDDINGS = "embed_tokens.weight"


class Network(Model):
    """A network of ``encoder.trained`` in training.

    ``tensors``, by name, become its weights, maybe not copied, with errors of ``build_network``.
    Embeddings have the n-grams of ``features``, if any.
    """

    def __init__(self, tensors: Tensors, options: TrainingOptions, features: Features) -> None:
        super().__init__()
        self.architecture, self._at_once = options.architecture.name, options.at_once
        self.network = build_network(self.architecture, tensors, dropout=options.dropout)
        self.network.requires_grad_(True)
        if features.ngram_rows:
            self.network.embed_tokens = SpelledEmbedding(tensors[EMBEDDINGS], features)

    def forward(self, tokens: Tokens) -> Tensor:
        """Embed S sentences of pieces, at least one, as vectors (S, D).

        Each is cut after 128 pieces, and ended. ``at_once`` limits memory (Gao et al. 2021).
        """
        groups = group_by_length(np.diff(tokens.offsets), -(-len(tokens) // self._at_once))
        order = np.concatenate(groups)
        embed: Callable[[Tokens], Tensor] = self._embed
        if len(order) > self._at_once and torch.is_grad_enabled():
            embed = partial(checkpoint, embed, use_reentrant=False)
        vectors = [embed(tokens.take(rows)) for rows in groups]
        return torch.cat(vectors)[torch.from_numpy(np.argsort(order))]

    def start_from(self, encoder: Encoder) -> None:
        """Copy the weights of another network, which must have the same pieces.

        Raises:
            ValueError: It is not a ``TrainedNetwork``, has other tensors, or n-grams are used.
        """
        if not isinstance(encoder, trained.TrainedNetwork):
            raise ValueError(
                f"--start: {encoder.name} is not a network of 'adit train'; pass such an encoder, "
                "or, for a bag of this version, --architecture bag"
            )
        try:
            self.network.load_state_dict(encoder.weights())
        except RuntimeError as error:
            raise ValueError(
                f"--start: {encoder.name} has other layers than the new encoder; pass its "
                "--architecture, --dim, --layers and, for a bilstm, --word-dim, and omit "
                "--ngram-rows"
            ) from error

    def _embed(self, tokens: Tokens) -> Tensor:
        device = self.network.embed_tokens.weight.device
        parts = pad(tokens, end=self.network.vocabulary - 1)
        return self.network(*(part.to(device) for part in parts))

    def export(self, tokenizer: Tokenizer, *, sample: Sequence[str], whitening: float) -> Trained:
        """Return the float32 encoder and a function to save it (``Model.export``)."""
        self.eval()
        network = self.fold()
        ready = PreparedNetwork(
            network, precision="float32", device=network.embed_tokens.weight.device
        )
        tokenizer_with_end = trained.EndingTokenizer(tokenizer)
        name, model, networks = self.architecture, tokenizer.model, {trained.ALL: network}
        save = partial(save_networks, architecture=name, networks=networks, tokenizer_model=model)
        return NetworkEncoder(name="training", tokenizer=tokenizer_with_end, network=ready), save

    def fold(self) -> trained.Trainable:
        """Return the network, with an ordinary table of embeddings.

        With spelled embeddings, it is new, without gradients, evaluating, and shares the rest.
        """
        embeddings = self.network.embed_tokens
        if not isinstance(embeddings, SpelledEmbedding):
            return self.network
        tensors = self.network.state_dict()
        for name in embeddings.state_dict():
            del tensors[f"embed_tokens.{name}"]
        return build_network(self.architecture, {**tensors, EMBEDDINGS: embeddings.fold()})


def group_by_length(lengths: Rows, least: int = 1) -> list[Rows]:
    """Divide S sentences into groups of similar lengths and sizes.

    A group is the positions of its sentences, int64, by ascending length. ``lengths``, int64 (S,),
    count tokens. There is a group per 32 sentences, up to 16, but at least ``least`` (1 to S).
    """
    order = np.argsort(lengths, kind="stable")
    return np.array_split(order, max(least, min(MAX_GROUPS, len(order) // MIN_GROUP_SENTENCES)))


def pad(tokens: Tokens, *, end: int) -> tuple[Tensor, Tensor]:
    """Pad S sentences to the longest one's length, and return ids and lengths.

    Ids are int64 (S, T), and lengths int64 (S,). A sentence is cut after 128 tokens, then ended and
    padded by ``end``. Lengths include one ``end``.
    """
    lengths = np.minimum(np.diff(tokens.offsets), LONGEST)
    positions = np.arange(int(lengths.max(initial=0)) + 1)
    ids = np.full((len(tokens), len(positions)), end, dtype=np.int64)
    is_token = positions < lengths[:, None]
    ids[is_token] = tokens.ids[(tokens.offsets[:-1, None] + positions)[is_token]]
    return torch.from_numpy(ids), torch.from_numpy(lengths + 1)


def module_key(language: str) -> str:
    """Return a language, with "_" if it is an attribute of ``ModuleDict``."""
    return f"{language}_" if hasattr(nn.ModuleDict, language) else language


class Apart(Model):
    """One or more networks by language, called only through ``network_of``."""

    def __init__(self, networks: Mapping[str, Network]) -> None:
        super().__init__()
        self._by_language = networks
        self._networks = nn.ModuleDict({module_key(name): networks[name] for name in networks})

    def network_of(self, language: str) -> Network:
        """Return the network of a language that has one."""
        return self._by_language[language]

    def start_from(self, encoder: Encoder) -> None:
        """Copy weights to all networks, with errors of ``Network.start_from``."""
        for network in self._by_language.values():
            network.start_from(encoder)

    def export(self, tokenizer: Tokenizer, *, sample: Sequence[str], whitening: float) -> Trained:
        """Return an ``ApartEncoder`` and its saving function, as ``Model.export``."""
        encoders = {
            language: network.export(tokenizer, sample=sample, whitening=whitening)[0]
            for language, network in self._by_language.items()
        }
        networks = {language: network.fold() for language, network in self._by_language.items()}
        name, model = next(iter(self._by_language.values())).architecture, tokenizer.model
        save = partial(save_networks, architecture=name, networks=networks, tokenizer_model=model)
        return trained.ApartEncoder(name="training", encoders=encoders), save
