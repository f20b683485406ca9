"""Compare LASER2's network with LASER's loop and the bundled encoder.

    OMP_NUM_THREADS=2 python benchmarks/encode.py SENTENCES... [--sentences N] [--of-laser N]

The network is of LASER2's size (5 x 512, both directions) with random weights; its tokens are those
of the bundled encoder. LASER's loop is written here as laser_encoders has it: batches of 12,000
tokens sorted by length, packed, float32. It is timed on a part of the sentences, as it is slow, and
anew before and after each precision, as machines change their pace.

A random network knows no translations: what is mined are sentences from among the same ones after a
word was left out, half of all each.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from encoder import load_encoder
from encoder.laser.networks import BiLSTM
from encoder.network import NetworkEncoder, prepare
from encoder.tokenizer import Tokenizer, Tokens
from miner import mine

EOS, PAD = 2, 1


class WithEnd:
    """The token ids of the bundled encoder, shifted, with an end of sentence."""

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


class Timed(NamedTuple):
    result: Any
    rate: float  # sentences a second
    effort: float  # processor time of a sentence, in ms

    def __str__(self) -> str:
        return f"{self.rate:,.0f} sentences/s, {self.effort:.3g} ms of processor time each"


def timed(sentences: int, work) -> Timed:
    start, used = time.perf_counter(), time.process_time()
    result = work()
    taken, used = time.perf_counter() - start, time.process_time() - used
    return Timed(result, sentences / taken, 1000 * used / sentences)


def without_a_word(sentences: list[str]) -> list[str]:
    draw = random.Random(0)
    return [
        " ".join(words[:place] + words[place + 1 :])
        for words in map(str.split, sentences)
        for place in [draw.randrange(max(1, len(words)))]
    ]


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
    parser.add_argument("--of-laser", type=int, default=500, help="sentences for LASER's loop")
    parser.add_argument("--precisions", nargs="*", default=["float32", "bfloat16", "int8"])
    args = parser.parse_args()
    each = args.sentences // 2 // len(args.files)
    real = [line for path in args.files for line in path.read_text("utf-8").split("\n")[:each]]
    sentences = real + without_a_word(real)
    bundled = load_encoder()
    bundled.encode(sentences[:100])
    print("bundled encoder:", timed(len(sentences), lambda: bundled.encode(sentences)))

    tokenizer = WithEnd(bundled._tokenizer)
    tokens = tokenizer.encode(sentences)
    print(
        f"LASER2's size: {len(sentences):,} sentences, "
        f"{len(tokens.ids) / len(sentences):.1f} tokens each, {torch.get_num_threads()} threads"
    )
    network = random_network(len(bundled._tokenizer) + 4)
    lstm = torch.nn.LSTM(320, 512, num_layers=5, bidirectional=True).eval()
    lstm.load_state_dict(network.lstm.state_dict())
    part = np.linspace(0, len(sentences) - 1, args.of_laser).astype(np.int64)

    def laser() -> Timed:
        done = timed(len(part), lambda: lasers_loop(network, lstm, tokens.take(part)))
        print("LASER's loop:", done, flush=True)
        return done

    before = laser()
    exact, pairs = None, set()
    for precision in args.precisions:
        chosen = prepare(network, precision, tokens)
        encoder = NetworkEncoder(name="x", tokenizer=tokenizer, network=chosen)
        encoder.encode(sentences[:50])  # compiles
        ours = timed(len(sentences), partial(encoder.encode, sentences, normalize=False))
        print(f"{precision}: {ours}", flush=True)
        after = laser()
        found = ours.result
        if exact is None:
            exact, pairs = found, pairs_of(found)
        print(
            f"  {2 * ours.rate / (before.rate + after.rate):.2f} x LASER's loop, "
            f"{(before.effort + after.effort) / 2 / ours.effort:.2f} x by processor time; least "
            f"cosine {least_cosine(found[part], before.result):.6f}, to {args.precisions[0]} "
            f"{least_cosine(found, exact):.6f}; of {len(pairs):,} pairs "
            f"{len(pairs & pairs_of(found)) / len(pairs):.2%} the same",
            flush=True,
        )
        before = after


if __name__ == "__main__":
    sys.exit(main())
