"""Options of a mining run and of its parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from encoder import BEST, Precision
from miner import choices
from miner.extras import require
from miner.knn.method import AUTO, CorpusMethod, IndexSpec, parse_method
from miner.language_codes import base_language
from miner.languages import is_code, main_language
from miner.storage.layout import CORPUS, DOCUMENT, OWN_FOLDERS, SCOPES, SIDES, SOURCE
from miner.storage.places import Place, lies_in, same_file
from miner.storage.writers import Origin, Output

if TYPE_CHECKING:
    from miner.knn.core.codes import Precision as SearchPrecision

WORDS, MARGIN = choices.SCORES
WHOLE_JOB = ""  # the part that is a whole job
MIN_NAMED_SHARE = 0.1  # share of a sample from which a language code in a path is believed
ROWS_PER_SHARD = 1 << 18  # 262,144 float32 vectors of 384 dimensions are 400 MB


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """The corpus of one side of a run.

    Attributes:
        path: File or folder of sentences or documents.
        language: BCP 47 tag that the user gave, None to detect the language.
        shares: Share (0 to 1) of each language in a sample, largest first; empty if not detected.
        escapes: How often HTML entities in the text are to be unescaped, usually 0.
        input_format: Format of the corpus, as for ``--input-format``; "auto" recognises it.
        embeddings: File with a precomputed vector for each line, None to encode the text.
        dim: Dimensions of ``embeddings`` without a header, None for an ``.npy`` file or for text.
    """

    path: Place
    language: str | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    escapes: int = 0
    input_format: str = "auto"
    embeddings: Place | None = None
    dim: int | None = None

    @property
    def effective_language(self) -> str | None:
        """The language code of the corpus, without script and region, or None.

        It is ``language`` if given. Otherwise it is a code in the path, such as ``de`` in
        ``news.de.txt``, whose share is at least 10%, or else the largest share's if at least half.
        Codes in the file name precede codes in folders' names.
        """
        if self.language:
            return base_language(self.language)
        names = [name for part in reversed(str(self.path).split("/")) for name in part.split(".")]
        codes = (base_language(name) for name in names if is_code(name))
        named = (code for code in codes if self.shares.get(code, 0) >= MIN_NAMED_SHARE)
        return next(named, None) or main_language(self.shares)


@dataclass(frozen=True, kw_only=True)
class MiningOptions:
    """Options of a run, named as in the help of ``adit mine`` and ``rate``.

    Attributes:
        threshold: Kept pairs score above it, -inf if ``--threshold`` is not given.
        score: "words", "margin", or None to decide it by the languages' word vectors.
        scope: "document" to search only paired documents, "corpus" to search all sentences.
        margin_scope: Scope of the neighbours that margins use, None for ``scope``.
        document_pairs: File of document pairs; None with ``scope`` "document" to find the pairs.
        document_threshold: Minimum score of document pairs that the run finds.
        alignment: "free" or "monotone"; "lines" in ``adit rate``, where line i of both corpora is
            a pair, and all pairs are kept unless ``threshold`` or ``fdr`` is given.
        memory: Bytes for all ``workers``, or a process of ``runner``; None for half of a machine's.
        rows_per_shard: Maximum sentences per shard; memory may require fewer.
        filters: Names of single filters; sets such as "web" pass the checks, but fail later.
        runner: Beam's name of another engine, with its ``beam_options``; None for this machine.
        repair: Whether the corpora have repaired texts, and are files of ``write_sides``.
        corpus_names: Names of both corpora in the work folder, which many pairs may share.
        config: TOML text of all options, for the summary of the run.
    """

    source: CorpusOptions
    target: CorpusOptions
    output: Place
    work_dir: Place
    encoder: str = BEST
    k: int = 4
    margin: str = "ratio"
    retrieval: str = "max"
    threshold: float = -math.inf
    score: str | None = None
    fdr: float | None = None
    all: bool = False
    top: int | None = None
    index: str = "auto"
    precision: Precision = "auto"
    search_precision: SearchPrecision | Literal["auto"] = "auto"
    scope: str = CORPUS
    margin_scope: str | None = None
    document_pairs: Place | None = None
    document_threshold: float = 0.35
    alignment: str = choices.FREE
    memory: int | None = None
    keep_duplicates: bool = False
    max_rejected: int | None = None
    shards: int | None = None
    filters: tuple[str, ...] = ()
    order: str = choices.BY_SCORE
    near_duplicates: bool = False
    keep_identical: bool = False
    unmatched_words: bool = False
    rows_per_shard: int = ROWS_PER_SHARD
    workers: int = 1
    runner: str | None = None
    beam_options: tuple[str, ...] = ()
    repair: bool = False
    corpus_names: tuple[str, str] = SIDES
    config: str = ""

    def side(self, name: str) -> CorpusOptions:
        """Return the options of the source for "source", else of the target."""
        return self.source if name == SOURCE else self.target

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scope of the search, and the scope of margins if it differs."""
        return tuple(dict.fromkeys([self.scope, self.margin_scope or self.scope]))

    @property
    def pairs_documents(self) -> bool:
        """Whether the run itself finds the document pairs."""
        return self.scope == DOCUMENT and self.document_pairs is None

    @property
    def is_monotone(self) -> bool:
        """Whether the sentences of paired documents are aligned in order."""
        return self.alignment == choices.MONOTONE

    @property
    def keeps_repeats(self) -> bool:
        """Whether duplicates are kept, by ``keep_duplicates`` or ``is_monotone``."""
        return self.keep_duplicates or self.is_monotone

    @property
    def runs_inside(self) -> bool:
        """Whether all stages run in the calling process."""
        return self.workers == 1 and self.runner is None

    @property
    def is_packaging_job(self) -> bool:
        """Whether Beam writes the job to a file instead of running it."""
        return "--output_executable_path" in (name.partition("=")[0] for name in self.beam_options)

    @property
    def margin_threshold(self) -> float:
        """The threshold of margins, -inf if ``scores_by_words``."""
        return -math.inf if self.scores_by_words else self.threshold

    @property
    def scores_by_words(self) -> bool:
        """Whether the judge scores the pairs, False while that is not decided."""
        return self.score == WORDS

    @property
    def rejected_output(self) -> Place:
        """The path of rejected pairs, or ValueError for an unknown format."""
        return Output.named(self.output).rejected

    @property
    def outputs(self) -> list[Place]:
        """``output`` and, with ``filters``, ``rejected_output`` or its error."""
        return [self.output, *([self.rejected_output] if self.filters else [])]

    @property
    def origin(self) -> Origin:
        """The given languages, and the encoder or "precomputed embeddings"."""
        encoder = "precomputed embeddings" if self.source.embeddings else self.encoder
        return Origin(languages=(self.source.language, self.target.language), encoder=encoder)

    @property
    def method(self) -> CorpusMethod | None:
        """The result of ``parse_method`` for ``index``, None for "auto"."""
        return None if self.index == AUTO else parse_method(self.index)

    @property
    def product_precision(self) -> SearchPrecision | None:
        """The precision of the search's first pass, None for the fastest."""
        return None if self.search_precision == "auto" else self.search_precision


class Element(NamedTuple):
    """A stage's input or output (``reference``) in a part of the job."""

    part: str
    reference: Any


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run of one or more pairs of corpora.

    ``parts`` are options by name of a part, "" for the whole run. ``corpora`` are to be read, each
    an ``Element`` of a part and the name of a side. ``pairs`` are the names of the parts to mine.
    """

    parts: Mapping[str, MiningOptions]
    corpora: Sequence[Element]
    pairs: Sequence[str]

    @property
    def whole(self) -> MiningOptions:
        """The options of the whole run."""
        return self.parts[WHOLE_JOB]


def job_of(options: MiningOptions) -> Job:
    """Build the job of a run of two corpora, whose only part is the whole."""
    return Job(
        parts={WHOLE_JOB: options},
        corpora=[Element(WHOLE_JOB, side) for side in SIDES],
        pairs=[WHOLE_JOB],
    )


def check_options(options: MiningOptions) -> None:
    """Check a run's options, without its encoder and contents of files.

    Raises:
        ValueError: An option is invalid, or conflicts with another option or a file.
        ModuleNotFoundError: A required extra of the distribution is not installed.
        OSError: A file is missing, or an output cannot be written.
    """
    from miner.storage.pairs import check_output

    choices.check_choice("--margin", options.margin, choices.MARGINS)
    check_kept(options)
    choices.check_choice("--order", options.order, choices.ORDERS)
    choices.check_choice("--retrieval", options.retrieval, choices.RETRIEVALS)
    _check_search_precision(options.search_precision)
    if options.k < 1:
        raise ValueError(f"-k {options.k}: must be at least 1")
    for name, minimum in (("shards", 1), ("workers", 1), ("max_rejected", 0), ("top", 1)):
        if (count := getattr(options, name)) is not None and count < minimum:
            raise ValueError(f"--{name.replace('_', '-')} {count}: must be at least {minimum}")
    if options.rows_per_shard < 1:
        raise ValueError(f"rows_per_shard is {options.rows_per_shard}; it must be at least 1")
    if isinstance(options.method, IndexSpec):
        from miner.knn.faiss_index import check_index

        check_index(options.index)
    _check_scopes(options)
    _check_sides(options)
    if options.near_duplicates:
        require("rensa")
    for output in options.outputs:
        check_output(output, options.origin)
    if options.unmatched_words:
        _check_unmatched_words(options)
    _check_work_dir(options)


def _check_search_precision(precision: str) -> None:
    choices.check_choice("--search-precision", precision, choices.SEARCH_PRECISIONS)
    if precision in ("bfloat16", "int8"):
        from miner.instructions import CHOSEN  # loads Numba

        if precision == "bfloat16" or CHOSEN is None:
            require("torch")


def _check_unmatched_words(options: MiningOptions) -> None:
    if options.score == MARGIN:
        raise ValueError("--unmatched-words requires scores by words; omit --score margin")
    if not Output.named(options.output).format.has_all_fields:
        raise ValueError(
            f"{options.output}: this format has no field for --unmatched-words; write .jsonl, "
            ".parquet or .dataset, or omit the option"
        )


def check_kept(options: MiningOptions) -> None:
    """Check ``threshold``, ``filters``, ``score``, ``all`` and ``fdr``.

    Raises:
        ValueError: An option is invalid, or conflicts with another one.
    """
    if math.isnan(options.threshold) or options.threshold == math.inf:
        raise ValueError(
            f"--threshold {options.threshold}: no pair can score above it; pass a lower one"
        )
    for name in options.filters:
        choices.check_choice("--filters", name, (*choices.FILTERS, *choices.FILTER_SETS))
    if options.score is not None:
        choices.check_choice("--score", options.score, choices.SCORES)
    if options.all and (options.fdr is not None or options.threshold != -math.inf):
        other = "--threshold" if options.fdr is None else "--fdr"
        raise ValueError(f"--all conflicts with {other}; omit one of them")
    if options.fdr is None:
        return
    if not 0 < options.fdr < 1:
        raise ValueError(f"--fdr {options.fdr:g}: must be between 0 and 1, such as 0.05")
    if options.score == MARGIN:
        raise ValueError("--fdr requires scores by words; omit --score margin")
    if options.threshold != -math.inf:
        raise ValueError("--fdr conflicts with --threshold; omit one of them")


def _check_scopes(options: MiningOptions) -> None:
    for name, scope in (("--scope", options.scope), ("--margin-scope", options.margin_scope)):
        if scope is not None:
            choices.check_choice(name, scope, SCOPES)
    choices.check_choice("--alignment", options.alignment, (*choices.ALIGNMENTS, choices.LINES))
    if options.order == choices.AS_INPUT and options.alignment != choices.LINES:
        raise ValueError("--order input requires lines to rate, as in adit rate; omit it")
    if options.is_monotone and options.scope != DOCUMENT:
        raise ValueError("--alignment monotone requires --scope document")
    if options.is_monotone and options.retrieval != MiningOptions.retrieval:
        raise ValueError(
            f"--retrieval {options.retrieval} conflicts with --alignment monotone; omit one of them"
        )
    if options.scope != DOCUMENT and options.document_pairs is not None:
        raise ValueError("--document-pairs requires --scope document")
    if options.scope != DOCUMENT and options.margin_scope == DOCUMENT:
        raise ValueError("--margin-scope document requires --scope document")
    if CORPUS not in options.scopes and options.index not in ("auto", "exact"):
        raise ValueError(
            f"--index {options.index} conflicts with --scope document, which searches exactly; "
            "omit it, or add --margin-scope corpus"
        )


def _check_sides(options: MiningOptions) -> None:
    source, target = options.source.path, options.target.path
    vectors = [side.embeddings for side in (options.source, options.target) if side.embeddings]
    folders = [path for path in (source, target) if path.is_dir()]
    if any(options.output.parent.resolve() == folder.resolve() for folder in folders):
        raise ValueError(
            f"{options.output}: folder is a corpus of this run; pass another output folder"
        )
    files = [path for path in (source, target) if path not in folders]
    files += [*vectors, *([options.document_pairs] if options.document_pairs else [])]
    for output in options.outputs:
        for file in Output.named(output).files(options.origin):
            check_files(files, file)
    if same_file(source, target):
        raise ValueError(
            f"{source}: SRC and TGT are the same file or folder, so every sentence would be its "
            "own translation; pass two corpora"
        )
    if len(vectors) == 1:
        flags = ["--src-embeddings", "--tgt-embeddings"]
        flag, other = flags if options.source.embeddings else reversed(flags)
        raise ValueError(f"{flag} requires {other}, of the same encoder; pass both files, or none")
    if vectors and same_file(*vectors):
        raise ValueError(f"{vectors[0]}: both sides have the same vectors; pass one file per side")
    if (dim := options.source.dim) is not None and dim < 1:
        raise ValueError(f"--dim {dim}: must be at least 1")
    if dim is not None and not vectors:
        raise ValueError("--dim requires --src-embeddings and --tgt-embeddings; omit it")


def check_files(inputs: Sequence[Place], output: Place) -> None:
    """Check that inputs are regular files, and that none is the output.

    Raises:
        FileNotFoundError: An input does not exist.
        IsADirectoryError: An input is a folder.
        ValueError: An input is not a regular file, or the same file as the output.
    """
    for path in inputs:
        if path.is_dir():
            raise IsADirectoryError(f"{path}: is a folder; pass a file in it")
        if not path.exists():
            raise FileNotFoundError(f"{path}: file not found; check its path")
        if not path.is_file():
            raise ValueError(
                f"{path}: must be a regular file, because it is read more than once; save it first"
            )
        if output.exists() and same_file(output, path):
            raise ValueError(f"{output}: output would overwrite an input; pass another file")


def _check_work_dir(options: MiningOptions) -> None:
    work_dir = options.work_dir
    if work_dir.exists() and not work_dir.is_dir():
        raise NotADirectoryError(f"--work-dir {work_dir}: is a file; name a folder")
    # Other outputs are next to this one.
    if any(lies_in(options.output, work_dir / name) for name in OWN_FOLDERS):
        raise ValueError(
            f"{options.output}: is reserved for files of the work folder; pass another output"
        )
