"""Networks in training: sentences of many lengths side by side."""

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
from encoder.network import NetworkEncoder, Ready
from encoder.tokenizer import Tokenizer, Tokens
from encoder.trained import build_network, save_networks
from encoder.training.architectures.model import Model, Trained
from encoder.training.data import LONGEST, Rows
from encoder.training.options import TrainingOptions


class SpelledEmbedding(nn.Embedding):
    """Embeddings of V pieces and an end that share what their n-grams of letters have learnt.

    A piece's vector is the mean of its own and tanh(W s), s being the sum of its n-grams' vectors
    (Chidambaram et al. 2019, section 2.1, of words). A piece is spelt the same everywhere, so
    ``folded`` gives the table that an ordinary network has.
    """

    def __init__(self, weight: Tensor, features: Features) -> None:
        """Take the pieces' own vectors, float32 (V + 1, D)."""
        rows, dim = weight.shape
        super().__init__(rows, dim, _weight=weight.clone())
        self.ngrams = nn.Parameter(torch.randn(features.ngram_rows, dim) * weight.std())
        self.mixed = nn.Linear(dim, dim, bias=False)
        alone = Tokens(ids=np.arange(features.pieces, dtype=np.int32), offsets=np.arange(rows))
        numbers, words = features.split(alone)
        found = words.take(numbers.ids.astype(np.int64))
        ngram = found.ids >= features.pieces
        before = np.concatenate(([0], np.cumsum(ngram)))[found.offsets]
        self._spelling = Tokens(  # of the end, nothing
            ids=found.ids[ngram] - features.pieces, offsets=np.append(before, before[-1])
        )

    def forward(self, ids: Tensor) -> Tensor:
        """Embed pieces: int64 (...) to float (..., D)."""
        different, places = torch.unique(ids, return_inverse=True)
        return self._embed(different)[places]

    def folded(self) -> Tensor:
        """Return the vectors of all pieces and of the end: (V + 1, D)."""
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


# A network embeds a batch in up to so many groups of like lengths, each padded by itself, if they
# have as many sentences.
GROUPS, SMALLEST = 16, 32
EMBEDDINGS = "embed_tokens.weight"


class Network(Model):
    """A BiLSTM, a transformer or another network, given sentences of many lengths side by side."""

    def __init__(self, tensors: Tensors, options: TrainingOptions, features: Features) -> None:
        """Take weights as ``encoder.trained.build_network`` does."""
        super().__init__()
        self.architecture, self._at_once = options.architecture.name, options.at_once
        self.network = build_network(self.architecture, tensors, dropout=options.dropout)
        self.network.requires_grad_(True)
        if features.ngram_rows:
            self.network.embed_tokens = SpelledEmbedding(tensors[EMBEDDINGS], features)

    def forward(self, tokens: Tokens) -> Tensor:
        """Embed the sentences, each with the token that ends it: (S, D).

        Of more than ``at_once`` sentences no activations are kept: a group's are computed once
        more when its gradient is. The loss is still one over all vectors (Gao et al. 2021,
        "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup").
        """
        groups = like_lengths(np.diff(tokens.offsets), -(-len(tokens) // self._at_once))
        order = np.concatenate(groups)
        embed: Callable[[Tokens], Tensor] = self._embed
        if len(order) > self._at_once and torch.is_grad_enabled():
            embed = partial(checkpoint, embed, use_reentrant=False)
        vectors = [embed(tokens.take(rows)) for rows in groups]
        return torch.cat(vectors)[torch.from_numpy(np.argsort(order))]

    def begin_with(self, encoder: Encoder) -> None:
        """Take the weights of a network of the same architecture and sizes."""
        if not isinstance(encoder, trained.TrainedNetwork):
            raise ValueError(
                "--start: a network can only start from a network that 'adit train' wrote"
            )
        given = encoder.weights()
        sides = self.network.state_dict(), given
        own, others = ({name: one.shape for name, one in side.items()} for side in sides)
        if own != others:
            raise ValueError(
                "--start: the base encoder has other layers; pass its --architecture, --dim and "
                "--layers, and omit --ngram-rows"
            )
        self.network.load_state_dict(given)

    def _embed(self, tokens: Tokens) -> Tensor:
        device = self.network.embed_tokens.weight.device
        parts = pad(tokens, end=self.network.vocabulary - 1)
        return self.network(*(part.to(device) for part in parts))

    def finished(self, tokenizer: Tokenizer, *, sample: Sequence[str], whitening: float) -> Trained:
        """Return the encoder in float32, on the device where it is, and what saves it."""
        self.eval()
        network = self.folded()
        ready = Ready(network, precision="float32", device=network.embed_tokens.weight.device)
        ending = trained.EndingTokenizer(tokenizer)
        name, model, own = self.architecture, tokenizer.model, {trained.ALL: network}
        save = partial(save_networks, architecture=name, networks=own, tokenizer_model=model)
        return NetworkEncoder(name="training", tokenizer=ending, network=ready), save

    def folded(self) -> trained.Trainable:
        """Return the network with a vector for each piece, whatever these are made of here."""
        embeddings = self.network.embed_tokens
        if not isinstance(embeddings, SpelledEmbedding):
            return self.network
        tensors = self.network.state_dict()
        for name in embeddings.state_dict():
            del tensors[f"embed_tokens.{name}"]
        return build_network(self.architecture, {**tensors, EMBEDDINGS: embeddings.folded()})


def like_lengths(lengths: Rows, least: int = 1) -> list[Rows]:
    """Return the rows of sentences, shortest first, in ``least`` groups or more."""
    order = np.argsort(lengths, kind="stable")
    return np.array_split(order, max(least, min(GROUPS, len(order) // SMALLEST)))


def pad(tokens: Tokens, *, end: int) -> tuple[Tensor, Tensor]:
    """Return ids int64 (S, T) and lengths (S,): each sentence is ended, then padded, by ``end``."""
    lengths = np.minimum(np.diff(tokens.offsets), LONGEST)
    places = np.arange(int(lengths.max(initial=0)) + 1)
    ids = np.full((len(tokens), len(places)), end, dtype=np.int64)
    there = places < lengths[:, None]
    ids[there] = tokens.ids[(tokens.offsets[:-1, None] + places)[there]]
    return torch.from_numpy(ids), torch.from_numpy(lengths + 1)


class Apart(Model):
    """Networks by language, see ``encoder.trained``; ``of`` gives the one to embed with."""

    def __init__(self, networks: Mapping[str, Network]) -> None:
        super().__init__()
        self._networks = nn.ModuleDict(networks)

    def of(self, language: str) -> Network:
        """Return the network of a language."""
        network = self._networks[language]
        assert isinstance(network, Network)
        return network

    def begin_with(self, encoder: Encoder) -> None:
        """Begin all networks with the same weights."""
        for language in self._networks:
            self.of(language).begin_with(encoder)

    def finished(self, tokenizer: Tokenizer, *, sample: Sequence[str], whitening: float) -> Trained:
        """Return the encoder, and what saves it."""
        own = {language: self.of(language) for language in self._networks}
        encoders = {
            language: one.finished(tokenizer, sample=sample, whitening=whitening)[0]
            for language, one in own.items()
        }
        networks = {language: one.folded() for language, one in own.items()}
        name, model = next(iter(own.values())).architecture, tokenizer.model
        save = partial(save_networks, architecture=name, networks=networks, tokenizer_model=model)
        return trained.ApartEncoder(name="training", encoders=encoders), save
