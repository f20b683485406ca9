"""A small world: sentences of numbers, which two languages spell differently."""

import importlib
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from encoder.base import BaseEncoder
from eval.data.bucc import languages_of
from eval.tasks import TASKS, load_task
from pipelines.cli.mine import mine_corpus


class NumberEncoder(BaseEncoder):
    """Knows the numbers in a sentence and nothing else."""

    name = "numbers"
    dim = 64

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> NDArray[np.float32]:
        vectors = np.zeros((len(sentences), self.dim), dtype=np.float32)
        for row, sentence in enumerate(sentences):
            numbers = [int(word) for word in sentence.split() if word.isdecimal()]
            for number in numbers:
                vectors[row] += np.random.default_rng(number).standard_normal(self.dim)
        if not normalize:
            return vectors
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(lengths > 0, lengths, 1)


def write_split(
    folder: Path, pair: str, split: str, *, source: str, target: str, gold: str | None
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    first, second = languages_of(pair)
    (folder / f"{pair}.{split}.{first}").write_text(source, encoding="utf-8")
    (folder / f"{pair}.{split}.{second}").write_text(target, encoding="utf-8")
    if gold is not None:
        (folder / f"{pair}.{split}.gold").write_text(gold, encoding="utf-8")


def write_numbers(folder: Path, pair: str, split: str, *, first: int) -> None:
    """24 sentences a side; 12 numbers occur on both, of which gold knows all but the last."""
    foreign = "".join(f"xx-{n}\tSatz {n} {n + 1000}\n" for n in range(first, first + 24))
    english = "".join(f"en-{n}\tsentence {n} {n + 1000}\n" for n in range(first + 12, first + 36))
    gold = "".join(f"xx-{n}\ten-{n}\n" for n in range(first + 12, first + 23))
    write_split(folder, pair, split, source=foreign, target=english, gold=gold)


def use_encoder(monkeypatch: pytest.MonkeyPatch, load: Callable[[str], object]) -> None:
    """Let all tasks load their encoder by ``load``."""
    for module in [importlib.import_module("eval.tasks.suite"), *map(load_task, TASKS)]:
        if hasattr(module, "load_encoder"):
            monkeypatch.setattr(module, "load_encoder", load)


@pytest.fixture
def number_encoder(monkeypatch: pytest.MonkeyPatch) -> NumberEncoder:
    """The encoder that ``load_encoder`` gives for ``numbers``; other specs are refused."""
    instance = NumberEncoder()

    def load(spec: str) -> NumberEncoder:
        if spec != "numbers":
            raise ValueError(f"no encoder {spec!r}")
        return instance

    use_encoder(monkeypatch, load)
    return instance


@pytest.fixture
def bucc_dir(tmp_path: Path) -> Path:
    """Two pairs: de-en with the usual splits, fr-en with dev and test."""
    root = tmp_path / "bucc"
    write_numbers(root / "de-en", "de-en", "training", first=0)
    write_numbers(root / "de-en", "de-en", "sample", first=100)
    write_numbers(root / "fr-en", "fr-en", "dev", first=200)
    write_numbers(root / "fr-en", "fr-en", "test", first=300)
    return root


HEBREW = "\u05e9\u05dc\u05d5\u05dd"


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled sample mined: ``work`` is the work folder, ``pairs.jsonl`` the output.

    One sentence is there twice, one has no vector, and two have mark-up and another script.
    """
    folder = tmp_path_factory.mktemp("run")
    sample = Path(str(files("eval"))) / "assets" / "sample" / "de-en"
    for side in ("de", "en"):
        lines = (sample / f"de-en.training.{side}").read_text(encoding="utf-8").splitlines()[:400]
        lines += [f"{side}-again\t{lines[0].partition(chr(9))[2]}", f"{side}-none\t\u200b"]
        lines += [f"{side}-markup\t<b>Linux</b> & </script> 1984", f"{side}-hebrew\t{HEBREW} 1984"]
        (folder / f"corpus.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    known = {line.partition("\t")[0] for line in lines}
    gold = (sample / "de-en.training.gold").read_text(encoding="utf-8").splitlines()
    kept = [line for line in gold if line.split("\t")[1] in known]
    ids = {line.partition("\t")[0] for line in (folder / "corpus.de").read_text().splitlines()}
    kept = [line for line in kept if line.split("\t")[0] in ids]
    (folder / "gold").write_text("\n".join([*kept, "de-nowhere\ten-nowhere"]) + "\n")
    arguments = [folder / "corpus.de", folder / "corpus.en", "-o", folder / "pairs.jsonl"]
    options = ["-q", "--score", "margin", "--work-dir", str(folder / "work")]
    assert mine_corpus([*map(str, arguments), *options]) == 0
    return folder


@pytest.fixture(scope="session")
def judged_run(finished_run: Path) -> Path:
    """The work folder of the same run with scores by words, and with the pairs likely right."""
    work = finished_run / "judged"
    corpora = [str(finished_run / f"corpus.{side}") for side in ("de", "en")]
    more = ["--align", "--work-dir", str(work)]
    assert mine_corpus([*corpora, "-q", "-o", str(finished_run / "judged.jsonl"), *more]) == 0
    return work
