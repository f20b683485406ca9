"""Corpora with known translations, to mine and learn from.

Synthetic ones are made of parallel text that no encoder was trained on, because words match better
in text that their encoder has seen. Others have gold pairs in BUCC's layout. A ``Spoil`` changes a
text at random, maybe by parts of ``others``, texts of its language.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from encoder.training.reading import ParallelText, find_parallel_text, read_parallel_text
from eval.data.bucc import bucc_pairs, languages_of, load_bucc, text_key
from eval.data.textfiles import choose
from eval.mined import Mined

# Shares of parallel sentences, and sentences without translation to add per side.
WORLDS = ((0.15, 0), (0.6, 0), (0.5, 8000), (0.5, 2000))
# Shares of parallel sentences, and pairs to use, of languages that are added for variety.
MORE_SHARES, MORE_PAIRS = (0.15, 0.5), 4000
MIN_WORDS, MIN_CHARACTERS = 4, 10  # of a sentence; characters without spaces
SPOILED = 0.08  # share of translated sentences that become near-copies
RIGHT, WRONG, UNKNOWN = 1, 0, -1

_CLAUSE = re.compile(r"[,;:.!?\u3001\u3002\uff0c\uff1a\uff1b]\s*")
_VERB = re.compile(r"\b(is|are|was|were|will|can|must|should|has|have|does|do|did)\b(?! not)")
_NOT = re.compile(r"n't\b| not\b| never\b")
_NAME = re.compile(r"(?<=[^.!?:\W] )[A-Z\u0391-\u03a9\u0410-\u042f]\w{2,}")
_LIST = Path(__file__).with_name("contradicting-words.tsv").read_text(encoding="utf-8")
# The built-in groups of contrary senses, each sense a list of words.
LISTED_GROUPS = [[sense.split(",") for sense in line.split("\t")] for line in _LIST.splitlines()]
GROUPS = [group for group in LISTED_GROUPS if len(group) > 1]

# Changes a sentence so that it contradicts its translation; the last argument has other sentences.
Spoil = Callable[[str, Random, Sequence[str]], str]


def half(text: str, random: Random, others: Sequence[str]) -> str:
    """Keep either half of a text's words or, if up to 3, of its characters."""
    words = text.split(" ")
    units, joint = (words, " ") if len(words) > 3 else (list(text), "")
    middle = len(units) // 2
    return joint.join(units[:middle] if random.random() < 0.7 else units[middle:])


def clause(text: str, random: Random, others: Sequence[str]) -> str:
    """Remove the part of a text up to, or after, a random punctuation mark.

    Both parts have over a fifth of the characters. Without such a mark, the text stays as it is.
    """
    ends = (match.end() for match in _CLAUSE.finditer(text))
    positions = [end for end in ends if len(text) < 5 * min(end, len(text) - end)]
    if not positions:
        return text
    position = random.choice(positions)
    return (text[:position] if random.random() < 0.5 else text[position:]).strip()


def number(text: str, random: Random, others: Sequence[str]) -> str:
    """Shift all digits of a text by one random number from 1 to 8, modulo 10."""
    shift = random.randrange(1, 9)
    return re.sub(r"\d", lambda digit: str((int(digit[0]) + shift) % 10), text)


def name(text: str, random: Random, others: Sequence[str]) -> str:
    """Replace a random name by one in up to 8 random ``others``, if any exist."""
    matches = list(_NAME.finditer(text))
    drawn = random.sample(others, min(8, len(others)))
    names: list[str] = [match for other in drawn for match in _NAME.findall(other)]
    if not matches or not names:
        return text
    replaced = random.choice(matches)
    return text[: replaced.start()] + random.choice(names) + text[replaced.end() :]


def negation(text: str, random: Random, others: Sequence[str]) -> str:
    """Remove the first English negation, or else negate the first auxiliary."""
    if _NOT.search(text):
        return _NOT.sub("", text, count=1)
    return _VERB.sub(r"\1 not", text, count=1)


def addition(text: str, random: Random, others: Sequence[str]) -> str:
    """Add a random one of ``others`` (not empty) before or after a text."""
    other = random.choice(others)
    return f"{text} {other}" if random.random() < 0.5 else f"{other} {text}"


def exchange(groups: Sequence[Sequence[Sequence[str]]]) -> Spoil:
    """Return a change that replaces a random English word by a contrary one.

    ``groups`` are like ``GROUPS``, maybe some of them. Texts without their words stay as they are.
    """
    senses = {word: (group, own) for group in groups for own in group for word in own}

    def change(text: str, random: Random, others: Sequence[str]) -> str:
        found = [match for match in re.finditer("[A-Za-z]+", text) if match[0].lower() in senses]
        if not found:
            return text
        match = random.choice(found)
        group, own = senses[match[0].lower()]
        word = random.choice(random.choice([other for other in group if other is not own]))
        word = word.capitalize() if match[0][0].isupper() else word
        return text[: match.start()] + word + text[match.end() :]

    return change


sense = exchange(GROUPS)
KINDS: tuple[Spoil, ...] = (half, half, clause, clause, number, name, negation, addition)


class Known:
    """Translations in parallel texts, as casefolded letters and digits."""

    def __init__(self, *texts: ParallelText) -> None:
        self._targets: defaultdict[str, set[str]] = defaultdict(set)
        self._sources: defaultdict[str, set[str]] = defaultdict(set)
        for text in texts:
            sides = (map(_bare, side) for side in (text.source, text.target))
            for source, target in zip(*sides, strict=True):
                self._targets[source].add(target)
                self._sources[target].add(source)

    def may_translate(self, source: str, target: str) -> bool:
        """Return whether a known source of ``target`` has a target of ``source``."""
        targets = self._targets.get(_bare(source), set())
        sources = self._sources.get(_bare(target), set())
        return any(targets & self._targets[other] for other in sources)


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


@dataclass(frozen=True, kw_only=True)
class LabelledCorpora:
    """Two corpora, source and target, with labelled pairs of texts.

    Pairs in ``gold`` are correct, other pairs that ``known`` links unlabelled, and the rest wrong.
    ``more`` is true for the smaller corpora of further languages.
    """

    name: str
    languages: tuple[str, str]
    source: Sequence[str]
    target: Sequence[str]
    gold: frozenset[tuple[str, str]]
    known: Known | None = None
    more: bool = False

    def labels(self, mined: Mined) -> NDArray[np.int8]:
        """Label mined pairs RIGHT (1), WRONG (0) or UNKNOWN (-1), int8 (P,)."""
        rows = zip(mined.pairs.source.tolist(), mined.pairs.target.tolist(), strict=True)
        texts = ((mined.texts[0][own], mined.texts[1][other]) for own, other in rows)
        return np.array([self._label(*pair) for pair in texts], dtype=np.int8)

    def _label(self, source: str, target: str) -> int:
        if (source, target) in self.gold:
            return RIGHT
        return UNKNOWN if self.known and self.known.may_translate(source, target) else WRONG


def labelled_corpora(
    parallel: Path,
    pairs: Sequence[str],
    *,
    among: Path,
    bucc: Path,
    exclude: frozenset[str],
    more: Sequence[str] = (),
) -> Iterator[LabelledCorpora]:
    """Yield all labelled corpora that the judge learns from.

    First come all splits in ``bucc``. Then each of the language ``pairs``, such as ``de-en``, has
    corpora for each of ``WORLDS``, made of its text in the folder ``parallel``. Its sentences in
    the folder ``among`` are added without their translations. Last, each of the language pairs
    ``more`` has smaller corpora, of its text in ``parallel`` alone. In both folders, the corpora
    ``exclude`` and pairs with a short sentence are skipped. ValueError says that a folder or file
    is empty or malformed, or lacks a pair.
    """
    folders = [(folder, find_parallel_text(folder)) for folder in (parallel, among)]
    files = {
        pair: [choose(names, pair, f"{folder}: no pair") for folder, names in folders]
        for pair in pairs
    }
    more_files = [choose(folders[0][1], pair, f"{parallel}: no pair") for pair in more]
    for pair, splits in bucc_pairs(bucc).items():
        for split in splits:
            yield comparable_corpora(bucc, pair, split)
    for pair in pairs:
        text, others = (_long(read_parallel_text(each, exclude=exclude)) for each in files[pair])
        random = Random(pair)
        make = partial(synthesise_corpora, text, Known(text, others), random=random)
        for place, (share, added) in enumerate(WORLDS):
            rows = list(range(len(text)))
            random.shuffle(rows)
            made = make(rows, share=share, name=f"{pair} {place}")
            yield _among(made, others, min(added, len(others) // 2), random)
    for pair, file in zip(more, more_files, strict=True):
        text = _long(read_parallel_text(file, exclude=exclude))
        random = Random(pair)
        make = partial(synthesise_corpora, text, Known(text), random=random)
        rows = list(range(len(text)))
        random.shuffle(rows)
        rows = rows[:MORE_PAIRS]
        for place, share in enumerate(MORE_SHARES):
            random.shuffle(rows)
            made = make(rows, share=share, name=f"{pair} {place}")
            yield replace(made, more=True)


def comparable_corpora(directory: Path, pair: str, split: str) -> LabelledCorpora:
    """Load a split of BUCC, such as ``training``, as labelled corpora.

    Duplicate texts are dropped. Errors of ``load_bucc`` are raised.
    """
    data = load_bucc(directory, pair, split)
    texts = [
        {name: text_key(text) for name, text in zip(side.ids, side.texts, strict=True)}
        for side in (data.source, data.target)
    ]
    source, target = (list(dict.fromkeys(side.values())) for side in texts)
    name = f"{split} {pair}"
    languages = languages_of(pair)
    gold = frozenset((texts[0][one], texts[1][two]) for one, two in data.gold)
    return LabelledCorpora(name=name, languages=languages, source=source, target=target, gold=gold)


def synthesise_corpora(
    text: ParallelText,
    known: Known,
    rows: Sequence[int],
    *,
    share: float,
    name: str,
    random: Random,
) -> LabelledCorpora:
    """Make two corpora from the pairs at ``rows`` of parallel text.

    Pairs of two equal sentences, or with a sentence of an earlier pair, are dropped. About a
    ``share`` of each corpus is from pairs with both sentences. Half of the other pairs contribute
    their source, and half their target. A share ``SPOILED`` of pairs with both sentences has one of
    them changed, and is gold only if it stays the same. ``random`` makes all choices.
    """
    pairs = _distinct((text_key(text.source[row]), text_key(text.target[row])) for row in rows)
    common = round(share * len(pairs) / (2 - share))
    middle = common + (len(pairs) - common) // 2
    both, spoiled = pairs[:common], round(SPOILED * common)
    alone = [own for own, _ in pairs[common:middle]], [other for _, other in pairs[middle:]]
    for pair in both[:spoiled]:
        kind, side = random.choice(KINDS), random.randrange(2)
        side = 1 if kind is negation else side
        changed = list(pair)
        changed[side] = text_key(kind(pair[side], random, alone[side] or [pair[0]]))
        for texts, sentence in zip(alone, changed, strict=True):
            texts.append(sentence)
    sides = []
    for side, texts in enumerate(alone):
        translated = dict.fromkeys(pair[side] for pair in both[spoiled:])
        others = (one for one in dict.fromkeys(texts) if one and one not in translated)
        sides.append([*others, *translated])
        random.shuffle(sides[-1])
    return LabelledCorpora(
        name=name,
        languages=languages_of(text.name),
        source=sides[0],
        target=sides[1],
        gold=frozenset(both),  # including unchanged pairs
        known=known,
    )


def _distinct(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    distinct, seen = [], (set[str](), set[str]())
    for pair in pairs:
        if pair[0] not in seen[0] and pair[1] not in seen[1] and pair[0] != pair[1]:
            distinct.append(pair)
            seen[0].add(pair[0])
            seen[1].add(pair[1])
    return distinct


def _long(text: ParallelText) -> ParallelText:
    def is_long(sentence: str) -> bool:
        words = sentence.split()
        spaced = len(sentence) < MIN_CHARACTERS * len(words)
        return len(words) >= MIN_WORDS if spaced else len(sentence) >= MIN_CHARACTERS

    sides = enumerate(zip(text.source, text.target, strict=True))
    return text.take(np.array([row for row, pair in sides if all(map(is_long, pair))]))


def _among(
    corpora: LabelledCorpora, others: ParallelText, count: int, random: Random
) -> LabelledCorpora:
    rows = random.sample(range(len(others)), 2 * count)
    source = [*corpora.source, *(text_key(others.source[row]) for row in rows[:count])]
    target = [*corpora.target, *(text_key(others.target[row]) for row in rows[count:])]
    random.shuffle(source)
    random.shuffle(target)
    return replace(corpora, source=list(dict.fromkeys(source)), target=list(dict.fromkeys(target)))
