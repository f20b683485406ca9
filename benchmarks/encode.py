"""LASER2's network against LASER's own loop, and the bundled encoder.

    OMP_NUM_THREADS=2 python benchmarks/encode.py SENTENCES... [--sentences N] [--of-laser N]

The network is of LASER2's size (5 x 512, both directions) with random weights; its tokens are those
of the bundled encoder. LASER's loop is written here as laser_encoders has it: batches of 12,000
tokens sorted by length, packed, float32. It is timed on a part of the sentences, as it is slow.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from encoder import load_encoder
from encoder.laser.bilstm import BiLSTM
from encoder.network import NetworkEncoder
from encoder.precision import ready
from encoder.tokenizer import Tokenizer, Tokens
from miner import mine

EOS, PAD = 2, 1


class WithEnd:
    """The bundled encoder's pieces, past the special ids, and the end of the sentence."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def for_language(self, language):
        return self

    def encode(self, sentences) -> Tokens:
        tokens = self.tokenizer.encode(sentences)
        ids = np.insert(tokens.ids + 4, tokens.offsets[1:], EOS).astype(np.int32)
        return Tokens(ids=ids, offsets=tokens.offsets + np.arange(len(tokens.offsets)))


def random_network(vocabulary: int) -> BiLSTM:
    torch.manual_seed(0)
    embedding, lstm = (
        torch.nn.Embedding(vocabulary, 320),
        torch.nn.LSTM(320, 512, num_layers=5, bidirectional=True),
    )
    tensors = {f"lstm.{name}": tensor for name, tensor in lstm.state_dict().items()}
    return BiLSTM({"embed_tokens.weight": embedding.weight.detach(), **tensors})


@torch.inference_mode()
def lasers_loop(network: BiLSTM, lstm: torch.nn.LSTM, tokens: Tokens) -> np.ndarray:
    lengths = np.diff(tokens.offsets)
    rows = [
        torch.from_numpy(part.astype(np.int64))
        for part in np.split(tokens.ids, tokens.offsets[1:-1])
    ]
    batches, size = [[]], 0
    for row in np.argsort(-lengths):
        if batches[-1] and size + lengths[row] > 12_000:
            batches.append([])
            size = 0
        batches[-1].append(row)
        size += lengths[row]
    vectors = []
    for batch in batches:
        ids = torch.full((len(batch), int(lengths[batch[0]])), PAD)
        for place, row in enumerate(batch):
            ids[place, : lengths[row]] = rows[row]
        embedded = network.embed_tokens(ids).transpose(0, 1)
        packed = torch.nn.utils.rnn.pack_padded_sequence(embedded, lengths[batch].tolist())
        outputs, _ = torch.nn.utils.rnn.pad_packed_sequence(lstm(packed)[0])
        padding = ids.eq(PAD).t().unsqueeze(-1)
        if padding.any():
            outputs = outputs.masked_fill_(padding, float("-inf"))
        vectors.append(outputs.max(dim=0)[0].numpy())
    return np.vstack(vectors)[np.argsort(np.concatenate(batches))]


def timed(what: str, sentences: int, work, base: float | None = None):
    start = time.perf_counter()
    result = work()
    rate = sentences / (time.perf_counter() - start)
    print(
        f"{what:28s} {rate:9,.0f} sentences/s" + (f"  {rate / base:5.2f} x" if base else ""),
        flush=True,
    )
    return result, rate


def least_cosine(found: np.ndarray, expected: np.ndarray) -> float:
    a, b = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (found, expected))
    return float((a * b).sum(axis=1).min())


def pairs_of(vectors: np.ndarray) -> set[tuple[int, int]]:
    half = len(vectors) // 2
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = mine(units[:half], units[half:])
    return set(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, help="one sentence a line")
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--of-laser", type=int, default=2_000, help="sentences for LASER's loop")
    parser.add_argument("--precisions", nargs="*", default=["float32", "bf16", "int8"])
    args = parser.parse_args()
    each = args.sentences // len(args.files)
    sentences = [line for path in args.files for line in path.read_text("utf-8").split("\n")[:each]]
    bundled = load_encoder()
    bundled.encode(sentences[:100])
    timed("bundled encoder", len(sentences), lambda: bundled.encode(sentences))

    tokenizer = WithEnd(bundled._tokenizer)
    tokens = tokenizer.encode(sentences)
    print(
        f"{len(sentences):,} sentences, {len(tokens.ids) / len(sentences):.1f} tokens each, "
        f"{torch.get_num_threads()} threads"
    )
    network = random_network(len(bundled._tokenizer) + 4)
    lstm = torch.nn.LSTM(320, 512, num_layers=5, bidirectional=True).eval()
    lstm.load_state_dict(network.lstm.state_dict())
    stride = np.linspace(0, len(sentences) - 1, args.of_laser).astype(np.int64)
    expected, base = timed(
        "LASER's loop", len(stride), lambda: lasers_loop(network, lstm, tokens.take(stride))
    )
    exact = None
    for precision in args.precisions:
        chosen = ready(network, precision, tokens)
        encoder = NetworkEncoder(name="x", tokenizer=tokenizer, network=chosen)
        encoder.encode(sentences[:50])  # compiles
        work = partial(encoder.encode, sentences, normalize=False)
        found, _ = timed(precision, len(sentences), work, base)
        print(f"  least cosine to LASER's loop {least_cosine(found[stride], expected):.6f}", end="")
        if exact is None:
            exact, pairs = found, pairs_of(found)
            print(f", largest difference {np.abs(found[stride] - expected).max():.1e}")
        else:
            same = len(pairs & pairs_of(found)) / len(pairs)
            print(
                f", to {args.precisions[0]} {least_cosine(found, exact):.6f}; same pairs {same:.2%}"
            )


if __name__ == "__main__":
    main()
