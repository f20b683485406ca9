"""Train the glossary by which the encoder `use` reads added languages.

    python benchmarks/glossary.py encoder/assets/use/more --train DATA [DATA ...]

The network stays as it is; sentences of other languages learn to have the vectors of their English
translations. English words that are rare in the pairs drawn keep the rows of their pieces. After a
kill, the same command goes on from OUT/training.pt, which may be deleted when it is done. The
languages, their errors and their means are then written by `joined_parts.py use/more`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from joined_parts import EXCLUDED
from safetensors.numpy import save
from torch import nn
from torch.nn import functional

from encoder import load_encoder
from encoder.checkpoint import CONFIG, WEIGHTS, replace_files
from encoder.rows import pack
from encoder.training.reading import find_parallel_text, read_parallel_text
from encoder.use.compiled import BEFORE, CHANNELS, HIDDEN, WIDTHS
from encoder.use.glossary import FORMAT, KINDS, Glossary, GlossaryWords, load_bundled, split
from encoder.use.weights import UNKNOWN, load_tokenizer, load_weights

if TYPE_CHECKING:
    Pairs = Sequence[tuple[str, str]]
    Sides = tuple[torch.Tensor, torch.Tensor]

# Those with most text, of several families and scripts: what is learnt is of no language.
LANGUAGES = "cs sk sl hr uk bg sr sv da nb is fi et hu lt lv ro ca el he fa hi id vi".split()
DOCUMENTATION, MOST = frozenset({"msdocs", "python-docs"}), (3_000, 8_000)  # pairs: of it, of all
LENGTHS = 2, 40  # words of a sentence
SEEN, STEPS, BATCH, AT_ONCE, SCALE, RATE = 5, 1500, 128, 50, 20.0, 1e-3


class Reader(nn.Module):
    """The trained rows of English words."""

    def __init__(self, glossary: Glossary) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.from_numpy(glossary.rows))

    def forward(self, words: GlossaryWords, sentences: Sequence[str]) -> Sides:
        """Return what the network gets of the sentences, (S, T, 512), and tokens of each, (S,)."""
        tokens = words.encode(sentences)
        different, places = np.unique(tokens.ids.astype(np.int64), return_inverse=True)
        own, known = words.places(different)
        columns, shares = (torch.from_numpy(a[known]) for a in (words.columns, words.shares))
        learnt = functional.embedding_bag(columns, self.rows, per_sample_weights=shares, mode="sum")
        rows = torch.from_numpy(words.rows(different)).index_copy(0, torch.from_numpy(own), learnt)
        counts = torch.from_numpy(np.diff(tokens.offsets))
        split_rows = rows[torch.from_numpy(places)].split(counts.tolist())
        return nn.utils.rnn.pad_sequence(list(split_rows), batch_first=True), counts


class TorchNetwork:
    """``encoder.use.network`` in torch, with bfloat16 products."""

    def __init__(self) -> None:
        given = load_weights().tensors
        self._tensors = {n: torch.from_numpy(np.asarray(t, np.float32)) for n, t in given.items()}

    def _beside(self, name: str) -> torch.Tensor:
        return torch.cat([self._tensors[f"{name}{width}"] for width in WIDTHS], -1)

    def _convolved(self, rows: torch.Tensor, layer: int, branch: int) -> torch.Tensor:
        width, before = WIDTHS[branch], BEFORE[branch]
        weights = self._tensors[f"w{layer}_{width}"].reshape(width, CHANNELS, CHANNELS)
        padded = functional.pad(rows, (0, 0, before, width - 1 - before))
        windows = padded.unfold(1, width, 1).transpose(2, 3).flatten(2)
        bias = self._tensors[f"b{layer}_{width}"]
        return functional.relu(windows.bfloat16() @ weights.flatten(0, 1).bfloat16() + bias)

    def __call__(self, rows: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """Return unit vectors (S, 512) of the tokens (S, T, 512)."""
        tensors, epsilon = self._tensors, float(self._tensors["eps"])
        kept = (torch.arange(rows.shape[1]) < counts[:, None])[..., None].float()
        products = (rows.bfloat16() @ self._beside("proj").bfloat16()).float()
        norm = (self._beside("ln_g"), self._beside("ln_b"))
        inputs = functional.layer_norm(products + self._beside("proj_b"), (HIDDEN,), *norm, epsilon)
        hidden = []
        for branch, own in enumerate((inputs * kept).split(CHANNELS, dim=-1)):
            first = (self._convolved(own, 1, branch) + own) * kept
            hidden.append(first + self._convolved(first, 2, branch))
        features = torch.cat([rows, *hidden], -1)
        sums = (functional.layer_norm(features, features.shape[-1:], eps=epsilon) * kept).sum(1)
        bias = tensors["ln_b"] @ tensors["cnn_W"] + tensors["cnn_b"]
        number = counts[:, None].float()
        mean = (
            sums @ (tensors["ln_g"][:, None] * tensors["cnn_W"]) + number * bias
        ) / number.sqrt()
        inner = functional.relu(
            mean @ tensors["p1"] + functional.relu(mean @ tensors["d0"]) @ tensors["d1"]
        )
        found = inner @ tensors["p3"] + functional.relu(inner @ tensors["d2"]) @ tensors["d3"]
        return functional.normalize(torch.tanh(found), dim=1)


def untrained(english: Sequence[str]) -> Glossary:
    """Return a glossary with the rows of the words' pieces."""
    tokenizer, weights = load_tokenizer(), load_weights()
    ids = []
    for change in (str.lower, str.capitalize):
        for word in english:
            spellings = (change(word), word, word.capitalize(), word.upper())
            ids.append(next(filter(None, map(tokenizer.piece, spellings)), UNKNOWN))
    return Glossary(english=english, rows=weights.rows(np.array(ids, dtype=np.int64)))


def extended(glossary: Glossary, english: Sequence[str]) -> Glossary:
    """Return a glossary with further words, with the rows of their pieces."""
    known = set(glossary.english)
    other = untrained([word for word in english if word not in known])
    halves = zip(np.split(glossary.rows, 2), np.split(other.rows, 2), strict=True)
    rows = np.concatenate([half for both in halves for half in both])
    return Glossary(english=[*glossary.english, *other.english], rows=rows)


def save_glossary(folder: Path, glossary: Glossary) -> None:
    """Write a glossary without languages, which must then be measured."""
    packed = pack(glossary.rows)
    english = np.frombuffer("\n".join(glossary.english).encode(), dtype=np.uint8)
    weights = save({"english": english, "table": packed.codes, "scales": packed.scales})
    config = {
        "format": FORMAT,
        "bundled": [load_bundled(language).name for language in KINDS],
        "sha256": hashlib.sha256(weights).hexdigest(),
        "languages": {},
    }
    text = json.dumps(config, indent=1, sort_keys=True) + "\n"
    replace_files(folder, {WEIGHTS: weights, CONFIG: text.encode()})


def english_words(texts: Iterable[str]) -> list[str]:
    """Return lower-case words that occur ``SEEN`` times, most frequent first.

    Each has a piece of the network, in lower case or in its most frequent case.
    """
    counts = Counter(part for text in texts for part in split(text))
    tokenizer = load_tokenizer()
    words = [word for word, count in counts.most_common() if count >= SEEN and word.isalpha()]
    return list(dict.fromkeys(word.lower() for word in words if tokenizer.piece(word)))


def all_english(folders: Sequence[Path]) -> Iterable[str]:
    """Return the distinct English sentences of all languages' text."""
    found: dict[str, None] = {}
    for folder in folders:
        for name, files in find_parallel_text(folder).items():
            if name.endswith("-en"):
                found |= dict.fromkeys(read_parallel_text(files, exclude=EXCLUDED).target)
    return found


def read_pairs(folders: Sequence[Path], language: str) -> list[tuple[str, str]]:
    """Return a limited number of pairs with English, shortest first."""
    found: list[list[tuple[str, str]]] = [[], []]
    for folder in folders:
        files = find_parallel_text(folder).get(f"{language}-en", ())
        if files:
            text = read_parallel_text(files, exclude=EXCLUDED)
            for source, target, corpus in zip(text.source, text.target, text.corpus, strict=True):
                if LENGTHS[0] <= len(source.split()) <= LENGTHS[1]:
                    found[corpus not in DOCUMENTATION].append((source, target))
    generator = random.Random(language)
    kept: list[tuple[str, str]] = []
    for pairs, most in zip(found, MOST, strict=True):
        kept += generator.sample(pairs, min(len(pairs), most - len(kept)))
    return sorted(kept, key=lambda pair: len(pair[0].split()))


def loss_of(source: torch.Tensor, target: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    """Return the loss of ranking translations both ways and of distances."""
    source, target = (functional.normalize(side - mean, dim=1) for side in (source, target))
    cosines = source @ target.T
    equal = target @ target.T > 1 - 1e-4
    scaled = (cosines * SCALE).masked_fill(equal & ~torch.eye(len(equal), dtype=torch.bool), -1e4)
    own = torch.arange(len(source))
    ranked = functional.cross_entropy(scaled, own) + functional.cross_entropy(scaled.T, own)
    return ranked / 2 + 2 * (1 - cosines.diagonal()).mean()


def train(
    reader: Reader, glossary: Glossary, texts: Mapping[str, Pairs], state: Path, steps: int
) -> None:
    """Run the remaining steps, with regular checkpoints."""
    teacher, network = load_encoder("use"), TorchNetwork()
    words = {language: GlossaryWords(glossary, load_bundled(language)) for language in texts}
    sample = [target for pairs in texts.values() for _, target in pairs[::100]]
    mean = torch.from_numpy(teacher.encode(sample).mean(axis=0))
    optimizer = torch.optim.Adam(reader.parameters(), lr=RATE)
    done, losses = 0, []
    if state.exists():
        done, weights, moments = torch.load(state)
        reader.load_state_dict(weights)
        optimizer.load_state_dict(moments)
    for step in range(done, steps):
        generator = random.Random(step)  # so that it goes on as if it had never stopped
        language = generator.choice([*texts])
        pairs = texts[language]
        start = generator.randrange(max(1, len(pairs) - BATCH))
        sources, targets = zip(*pairs[start : start + BATCH], strict=True)
        optimizer.param_groups[0]["lr"] = RATE * min(1, (step + 1) / AT_ONCE) * (1 - step / steps)
        loss = loss_of(
            network(*reader(words[language], sources)),
            torch.from_numpy(teacher.encode(targets)),
            mean,
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % AT_ONCE == 0:
            print(f"step {step + 1}: loss {np.mean(losses[-AT_ONCE:]):.3f}", flush=True)
            torch.save((step + 1, reader.state_dict(), optimizer.state_dict()), state)


def main() -> None:
    """Train from the network's own pieces, and write the glossary."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path, help="the folder to write")
    parser.add_argument("--train", type=Path, required=True, nargs="+", help="parallel text")
    parser.add_argument("--steps", type=int, default=STEPS, help="0: as the English pieces are")
    args = parser.parse_args()
    args.out.mkdir(exist_ok=True)
    read = {language: read_pairs(args.train, language) for language in LANGUAGES}
    texts = {language: pairs for language, pairs in read.items() if pairs}
    english = [target for pairs in texts.values() for _, target in pairs]
    glossary = untrained(english_words(english))
    reader = Reader(glossary)
    train(reader, glossary, texts, args.out / "training.pt", args.steps)
    trained = replace(glossary, rows=reader.rows.detach().numpy())
    save_glossary(args.out, extended(trained, english_words(all_english(args.train))))


if __name__ == "__main__":
    main()
