"""Map the words of two languages into one encoder, without translations."""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from encoder.checkpoint import replace_files
from encoder.monolingual.sides import learn_words, save_sides
from encoder.monolingual.vec import WordVectors, read_vec, write_vec
from encoder.tokenizer import Tokenizer, train_tokenizer
from miner.arrays import IntArray, Matrix
from miner.mapping.orthogonal import comparable_rows, identical_words, procrustes, refine
from miner.mapping.similarity import learn_by_itself, similarity_start
from miner.storage.atomic import check_folder
from miner.storage.corpus.entities import escaped_levels
from miner.storage.documents.split import open_side
from miner.storage.places import Place
from miner.storage.streams import read_lines
from miner.threads import run_in_threads
from miner.wording import counted
from pipelines import making_options as making
from pipelines.making_options import MapOptions
from pipelines.progress import Monitor
from pipelines.stages.reading.language import read_beginning

logger = logging.getLogger(__name__)

PROGRESS = "training"  # subfolder of the encoder's, from which learning resumes


def map_languages(options: MapOptions, monitor: Monitor) -> Sequence[float]:
    """Learn word vectors of two languages, map them, and write the encoder.

    The criteria, mean cosines, of the first map and each refinement are returned. The best map is
    written. Learning resumes from ``output``. ValueError says that options, text, vectors or a
    dictionary cannot be used, OSError that a file cannot be read or written, ModuleNotFoundError
    that ``start`` needs torch.
    """
    _check_options(options)
    (options.output / PROGRESS).mkdir(parents=True, exist_ok=True)
    texts, sides_read = _read_sides(options)
    words = (side.words for side in sides_read.values())
    tokenizer = _tokenizer(options, [*texts.values(), *words])
    by_language = sides_read | _learn(options, texts, tokenizer, monitor)
    source, target = (_comparable(name, by_language[name]) for name in options.languages)
    rounds: list[float] = []

    def note_criterion(number: int, value: float) -> None:
        logger.info("%s: mean cosine %.4f", counted(number, "refinements"), value)
        rounds.append(value)

    matrix, pairs = _make_map(source, target, options)
    mapping = refine(
        source.vectors, target.vectors, matrix, rounds=options.refinements, judged=note_criterion
    )
    image = replace(source, vectors=source.vectors @ mapping.matrix)
    with monitor.stage("write", None, "words") as meter:
        sides = dict(zip(options.languages, (image, target), strict=True))
        criterion = [round(value, 4) for value in rounds]
        facts = {"mapping": {"start": options.start, "pairs": pairs, "criterion": criterion}}
        save_sides(options.output, sides, tokenizer, options.words, facts)
        meter.advance(len(image.words) + len(target.words))
    if options.vec is not None:
        options.vec.mkdir(parents=True, exist_ok=True)
        for language, side in sides.items():
            write_vec(options.vec / f"{language}{making.VEC}", side.words, side.vectors)
    return rounds


def _make_map(source: WordVectors, target: WordVectors, options: MapOptions) -> tuple[Matrix, int]:
    sides, seed = (source.vectors, target.vectors), options.words.seed
    if options.start == making.SIMILARITY:
        return similarity_start(*sides, seed=seed).matrix, 0
    if options.start in (making.ADVERSARIAL, making.ALONE):
        from miner.mapping.adversarial import adversarial_start

        judge = partial(learn_by_itself, *sides, seed=seed)
        if options.start == making.ALONE:
            judge = partial(refine, *sides, rounds=0)
        log = partial(logger.info, "after %d updates: mean cosine %.4f")
        return adversarial_start(*sides, seed=seed, judge=judge, judged=log).matrix, 0
    if options.start == making.IDENTICAL:
        rows = identical_words(source.words, target.words)
        if not len(rows[0]):
            raise ValueError(
                "--start identical: the languages share no word; use a dictionary (--start FILE), "
                f"or --start {making.SIMILARITY}"
            )
    else:
        rows = _read_pairs(Path(options.start), source, target)
    logger.info("starting from %d pairs of words", len(rows[0]))
    return procrustes(source.vectors[rows[0]], target.vectors[rows[1]]), len(rows[0])


def _read_pairs(path: Path, source: WordVectors, target: WordVectors) -> tuple[IntArray, IntArray]:
    lines = [line.split() for line in read_lines(path)]
    own, other = ({word: row for row, word in enumerate(side.words)} for side in (source, target))
    for number, line in enumerate(lines, start=1):
        if len(line) < 2:
            raise ValueError(f"{path} line {number}: expected a word and its translation")
    rows = [(own[one], other[two]) for one, two, *_ in lines if one in own and two in other]
    if not rows:
        raise ValueError(
            f"{path}: no pair of words has vectors on both sides; put source words first, and "
            "write words as in the .vec files, or in lower case for text"
        )
    one, two = np.array(rows, dtype=np.int64).T
    return one, two


def _check_options(options: MapOptions) -> None:
    if options.languages[0] == options.languages[1]:
        raise ValueError(
            f"--src-lang, --tgt-lang: both are {options.languages[0]}; pass the languages of SRC "
            "and TGT"
        )
    if options.refinements < 0:
        raise ValueError(f"--refinements {options.refinements}: must be at least 0")
    check_folder(options.output)
    if options.vec is not None:
        check_folder(options.vec)
    if options.start not in making.STARTS and not Path(options.start).is_file():
        starts = ", ".join(making.STARTS)
        raise ValueError(f"--start {options.start}: file not found; pass a file or one of {starts}")


def _read_sides(options: MapOptions) -> tuple[dict[str, Sequence[str]], dict[str, WordVectors]]:
    texts: dict[str, Sequence[str]] = {}
    sides: dict[str, WordVectors] = {}
    dims = []
    for language, path in zip(options.languages, (options.source, options.target), strict=True):
        if path.suffix == making.VEC:
            sides[language] = read_vec(Path(str(path)))
            dims.append(sides[language].vectors.shape[1])
        else:
            texts[language] = _sentences(path, options.input_format)
            dims.append(options.words.dim)
    if dims[0] != dims[1]:
        raise ValueError(
            f"{options.source}: {dims[0]} dimensions, but {options.target}: {dims[1]}; pass .vec "
            "files with equal dimensions, or their number as --dim for text"
        )
    return texts, sides


def _tokenizer(options: MapOptions, texts: Sequence[Sequence[str]]) -> Tokenizer:
    size, digest = options.words.vocabulary_size, hashlib.sha256()
    for text in texts:
        digest.update("\n".join(text).encode("utf-8", "surrogatepass"))
    path = options.output / PROGRESS / f"{digest.hexdigest()[:12]}-{size}.model"
    if not path.exists():
        model = train_tokenizer(chain(*texts), vocabulary_size=size)
        replace_files(path.parent, {path.name: model})
    return Tokenizer(path.read_bytes())


def _learn(
    options: MapOptions, texts: Mapping[str, Sequence[str]], tokenizer: Tokenizer, monitor: Monitor
) -> dict[str, WordVectors]:
    sides: dict[str, WordVectors] = {}
    with monitor.stage("words", None, "words") as meter:
        meter.begin(0)

        def learn(language: str) -> None:
            # One folder per language, because a writer removes the temporary files in its folder.
            state = options.output / PROGRESS / language / "state.safetensors"
            state.parent.mkdir(exist_ok=True)
            inputs = texts[language], tokenizer, options.words, state
            try:
                sides[language] = learn_words(*inputs, progress=meter.advance)
            except ValueError as error:
                raise ValueError(f"{language}: {error}") from error

        run_in_threads(learn, texts)
    return sides


def _comparable(language: str, side: WordVectors) -> WordVectors:
    try:
        return replace(side, vectors=comparable_rows(side.vectors))
    except ValueError as error:
        raise ValueError(f"{language}: {error}") from error


def _sentences(path: Place, input_format: str) -> list[str]:
    texts: dict[str, None] = {}
    escapes = escaped_levels(read_beginning(path, input_format))
    for records in open_side(path, input_format, escapes=escapes):
        texts |= dict.fromkeys(records.kept_texts())
    if not texts:
        raise ValueError(f"{path}: contains no usable sentence; check it and --input-format")
    return list(texts)
