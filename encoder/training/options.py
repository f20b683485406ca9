"""Options of a training, for its data, architecture and objective."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar, dataclass_transform

T = TypeVar("T")

HELD_OUT_ERROR, PERPLEXITY, ACCURACY = "held_out_error", "perplexity", "accuracy"
MEASURES = (HELD_OUT_ERROR, PERPLEXITY, ACCURACY, "tatoeba_error", "bucc_f1")
WORD_DIM = 320  # of LASER's subwords (Artetxe & Schwenk 2019, section 3.1)
INFERENCE_LABELS = ("entailment", "neutral", "contradiction")
# Auxiliary tasks (``tasks.beside``): what they learn, and the content of their folders.
AUXILIARY_TASKS = {
    "response": "find the next turn of dialogues, one turn per line",
    "quick-thought": "find the neighbours in documents, one sentence per line",
    "skip-thought": "write the neighbours in documents, one sentence per line",
    "autoencoding": "write the sentence itself, one per line",
    "mlm": "predict masked subwords, of one sentence per line; needs a transformer",
    "clm": "predict each next subword, of one sentence per line; needs a transformer",
    "nli": "label pairs of sentences as entailment, neutral or contradiction",
}


def option(
    default: T,
    text: str = "",
    *,
    low: float = 0,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
) -> T:
    """Make a dataclass field of an option, with its help and allowed values.

    A number is from ``low`` to ``high``, both included. A string is one of ``choices``, if any, as
    ``ValidatedOptions`` checks. Without the help ``text``, it is not on the command line.
    """
    metadata = {"help": text, "low": low, "high": high, "choices": choices}
    return field(default=default, metadata=metadata)


def option_fields(part: type) -> dict[str, Field]:
    """Return the fields that ``option`` or ``inherit_option`` made, by name."""
    return {one.name: one for one in fields(part) if "low" in one.metadata}


def limits(one: Field) -> str:
    """Describe an option's allowed numbers, as ``1 or more`` or ``0 to 1``."""
    low, high = one.metadata["low"], one.metadata["high"]
    return f"{low} or more" if high == math.inf else f"{low} to {high}"


def inherit_option(inherited: type, name: str, default: T) -> T:
    """Make a field like another class's option, with another default."""
    return field(default=default, metadata=option_fields(inherited)[name].metadata)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class ValidatedOptions:
    """Base class, which makes subclasses frozen, keyword-only dataclasses.

    ValueError says that a number or string is not allowed by its ``option``.
    """

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        for name, one in option_fields(type(self)).items():
            value, low, high = getattr(self, name), one.metadata["low"], one.metadata["high"]
            choices, flag = one.metadata["choices"], f"--{name.replace('_', '-')}"
            if isinstance(value, int | float) and not low <= value <= high:
                raise ValueError(f"{flag} {value}: expected {limits(one)}")
            if choices and value not in choices:
                raise ValueError(f"{flag} {value}: choose one of {', '.join(choices)}")


class ArchitectureOptions(ValidatedOptions):
    """Base class of an architecture's options, with its name and help."""

    name: ClassVar[str]
    summary: ClassVar[str]
    dim: int = option(384, "dimensions of a sentence vector; multiples of 8 fit any network", low=1)
    learning_rate: float = option(
        2e-3, "maximum learning rate; pass a lower one if training diverges", high=1
    )
    token_dropout: float = option(
        0.0,
        "share of a bag's words, or a network's subwords, to drop at random; not for paths",
        high=0.99,
    )
    ngram_rows: int = option(
        0,
        "number of vectors of letter n-grams, which match names and rare words, such as 170000; "
        "0: none",
    )


class BagOptions(ArchitectureOptions):
    """Options of the weighted bag (``encoder.bag.encoder``)."""

    name, summary = "bag", "sum of subword vectors, the fastest"
    token_dropout: float = inherit_option(ArchitectureOptions, "token_dropout", 0.1)


class _SentenceOptions(ArchitectureOptions):
    dim: int = inherit_option(ArchitectureOptions, "dim", 1024)
    learning_rate: float = inherit_option(ArchitectureOptions, "learning_rate", 1e-3)


class _GatedOptions(_SentenceOptions):
    name, summary = "gated", "eight gated convolutional layers with max pooling"
    dim: int = inherit_option(ArchitectureOptions, "dim", 512)


class RecurrentOptions(_SentenceOptions):
    """Options of the recurrent networks."""

    layers: int = option(1, "number of layers of the network", low=1, high=5)


class BiLSTMOptions(RecurrentOptions):
    """Options of LASER's network (``encoder.laser.networks``)."""

    name, summary = "bilstm", "LASER's network, with max pooling"
    word_dim: int = option(WORD_DIM, "dimensions of the subword vectors", low=1)


class TransformerOptions(ArchitectureOptions):
    """Options of a dual encoder's transformer (``encoder.trained``)."""

    name, summary = "transformer", "a transformer with mean pooling"
    dim: int = inherit_option(ArchitectureOptions, "dim", 512)
    learning_rate: float = inherit_option(ArchitectureOptions, "learning_rate", 5e-4)
    layers: int = inherit_option(RecurrentOptions, "layers", 3)


def _named(base: type[T], name: str, summary: str, **facts: bool) -> type[T]:
    return type(f"{base.__name__}:{name}", (base,), {"name": name, "summary": summary, **facts})


class ObjectiveOptions(ValidatedOptions):
    """Base class of an objective's options, with its name and help.

    Attributes:
        in_tokens: whether ``batch_size`` is in tokens, not in sentence pairs.
        constant: whether the learning rate stays constant, instead of falling to zero.
        teacher: whether the objective needs a teacher.
        one_sided: whether only the sources are embedded.
        names: whether the teacher's vectors of a source's names are added to its vector.
        apart: whether each language has a network of its own.
        alone: whether text of one language is enough.
        labelled: whether the objective needs labelled pairs of one language.
        figure: the name of the objective's own measure, "" if none.
        best_by: the measure by which the best encoder is chosen, by default.
        schedule: ``adam``, or ``sgd`` for plain gradients with the schedule of ``Inference``.
        clip: the maximum length of a step's gradient, 0 for no limit.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    in_tokens = constant = teacher = one_sided = names = apart = alone = labelled = False
    figure, best_by = "", HELD_OUT_ERROR
    schedule: ClassVar[str] = "adam"
    clip: float = 0.0
    batch_size: int = option(
        1024,
        "tokens per batch (129 or more) for translation, mlm, tlm and clm; otherwise pairs per "
        "batch, which ranking and addition rank against each other",
        low=2,  # because a pair is ranked against others
    )
    whitening: float = option(
        0.0, "for bags: strength of scaling down the directions in which vectors vary most", high=1
    )


class RankingOptions(ObjectiveOptions):
    """Options of the objective ``ranking`` (``encoder.training.tasks``)."""

    name, summary = "ranking", "translations are closer than the rest of the batch"
    whitening: float = inherit_option(ObjectiveOptions, "whitening", 0.1)
    hard_negatives: int = option(
        0, "similar wrong translations that each pair is also ranked against", high=100
    )
    margin: float = option(
        0.2, "amount by which a correct pair's cosine must exceed wrong pairs' cosines", high=1
    )
    scale: float = option(
        20.0,
        "factor of cosines in the softmax; at larger ones, similar wrong translations count more",
        high=40,  # at larger scales, the objective's float32 softmax underflows
    )


class TranslationOptions(ObjectiveOptions):
    """Options of the objective ``translation`` (``encoder.training.tasks``)."""

    name, summary = "translation", "a decoder translates from the vector, as in LASER"
    in_tokens = constant = True  # Artetxe & Schwenk 2019, section 3.2
    figure = PERPLEXITY
    batch_size: int = inherit_option(ObjectiveOptions, "batch_size", 8000)
    targets: tuple[str, ...] = option(
        ("en", "es"), "languages that the decoder writes; for translation, 1 or 2 of each pair"
    )
    decoder_dim: int = option(2048, "size of the decoder's hidden state", low=1)


class PathsOptions(ObjectiveOptions):
    """Options of the objective ``paths``, in batches of N-way rows."""

    name = "paths"
    summary = (
        "an encoder per language and a decoder per language of --targets, from pairs that share "
        "their targets; a sole target has no encoder; needs a network"
    )
    apart, figure = True, PERPLEXITY
    batch_size: int = inherit_option(ObjectiveOptions, "batch_size", 96)
    whitening: float = 0.0
    clip: float = option(0.0, "maximum length of a step's gradient, such as 2; 0: no limit")
    targets: tuple[str, ...] = inherit_option(TranslationOptions, "targets", ("en",))
    decoder_dim: int = inherit_option(TranslationOptions, "decoder_dim", 512)
    sources: tuple[str, ...] = option(
        ("1",),
        "number of source languages whose vectors are averaged in a batch, 1 or more; or several "
        "numbers with their shares of batches, such as 1:.9,2:.05,3:.05",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.shares()

    def shares(self) -> dict[int, float]:
        """Return the relative share of batches, by default 1, by source count.

        Raises:
            ValueError: An item of ``sources`` is malformed or repeated.
        """
        shares: dict[int, float] = {}
        for source in self.sources:
            count, colon, share = source.partition(":")
            try:
                number, value = int(count), float(share) if colon else 1.0
            except ValueError:
                number, value = 0, 0.0
            shares[number] = 0.0 if number in shares else value
        if not all(count >= 1 and 0 < share < math.inf for count, share in shares.items()):
            raise ValueError(
                f"--sources {','.join(self.sources)}: expected numbers of languages and their "
                "shares, each once, such as 1:.9,2:.05,3:.05"
            )
        return shares


class AdditionOptions(ObjectiveOptions):
    """Options of the objective ``Addition``, whose space is the teacher's."""

    name = "addition"
    summary = "ranking by a teacher's unchanged vectors of the target languages; needs a bag"
    teacher = one_sided = names = True
    whitening: float = 0.0
    margin: float = inherit_option(RankingOptions, "margin", 0.2)
    scale: float = inherit_option(RankingOptions, "scale", 20.0)


class AlignmentOptions(ObjectiveOptions):
    """Options of the objective ``Alignment``, whose space is the teacher's."""

    name = "alignment"
    summary = "each source vector close to the teacher's vector of its target, which is fixed"
    teacher = one_sided = True
    whitening: float = 0.0
    negatives: float = option(0.25, "weight of the distances to wrong translations", high=0.5)


class _LanguageModelOptions(ObjectiveOptions):
    in_tokens = True
    figure = best_by = PERPLEXITY
    batch_size: int = inherit_option(ObjectiveOptions, "batch_size", 4000)


def _language_model(name: str, summary: str, *, alone: bool) -> type[ObjectiveOptions]:
    return _named(_LanguageModelOptions, name, f"{summary}; needs a transformer", alone=alone)


class _InferenceOptions(ObjectiveOptions):
    name = "nli"
    summary = "inference, from labelled pairs in one language; also saves the classifier"
    labelled = True
    figure = best_by = ACCURACY
    batch_size: int = inherit_option(ObjectiveOptions, "batch_size", 64)
    schedule: str = option(  # type: ignore[misc]  # an instance's field here
        "adam",
        "adam: steps by Adam, at a rate that rises, then falls to zero; sgd: steps along plain "
        "gradients (pass --learning-rate 0.1), at a rate that falls by a hundredth per evaluation, "
        "and to a fifth if accuracy drops; training ends at a rate below 1e-5, or after --steps",
        choices=("adam", "sgd"),
    )


ARCHITECTURES: dict[str, type[ArchitectureOptions]] = {
    kind.name: kind
    for kind in (
        BagOptions,
        BiLSTMOptions,
        TransformerOptions,
        _named(RecurrentOptions, "lstm-last", "the last state of an LSTM"),
        _named(RecurrentOptions, "gru-last", "the last state of a GRU"),
        _named(RecurrentOptions, "bigru-last", "the last states of a BiGRU"),
        _named(RecurrentOptions, "bilstm-last", "the last states of a BiLSTM"),
        _named(RecurrentOptions, "bilstm-mean", "a BiLSTM with mean pooling"),
        _named(RecurrentOptions, "attention", "a BiLSTM with inner attention by four contexts"),
        _named(_SentenceOptions, "hierarchical", "the maxima of four convolutional layers"),
        _GatedOptions,
    )
}
OBJECTIVES: dict[str, type[ObjectiveOptions]] = {
    kind.name: kind
    for kind in (
        RankingOptions,
        TranslationOptions,
        _named(ObjectiveOptions, "distillation", "match a teacher's vectors", teacher=True),
        AdditionOptions,
        AlignmentOptions,
        _language_model("mlm", "predict masked subwords, within each side", alone=True),
        _language_model("tlm", "predict masked subwords, of both sides together", alone=False),
        _language_model("clm", "predict each next subword", alone=True),
        _InferenceOptions,
        PathsOptions,
    )
}


class TrainingOptions(ValidatedOptions):
    """Options of the architecture, the objective and the training loop."""

    architecture: ArchitectureOptions = field(default_factory=BagOptions)
    objective: ObjectiveOptions = field(default_factory=RankingOptions)
    steps: int = option(40_000, "number of updates of the weights, the length of training", low=1)
    language_exponent: float = option(
        0.5,
        "exponent of a language pair's size in its sampling rate: 1 for proportional rates, "
        "0 for equal rates; not for paths",
        high=1,
    )
    accumulate: int = option(
        1, "batches per step, each ranked by itself; saves memory of a large --batch-size", low=1
    )
    at_once: int = option(
        2048,
        "maximum sentences in a network's memory; for a larger batch, activations are computed "
        "twice, which is slower and gives the same loss",
        low=1,
    )
    warmup_steps: int = option(200, low=1)
    dropout: float = option(
        0.1, "share of a network's activations that training drops at random", high=0.99
    )
    precision: str = option(
        "float32",
        "number format of matrix products; bfloat16 is faster on CPUs and GPUs with instructions "
        "for it, and many times slower on others",
        choices=("float32", "bfloat16"),
    )
    seed: int = option(1, "seed of random choices; others give other weights", high=2**63 - 1)

    def flat(self) -> dict[str, Any]:
        """Return all options by name, ``architecture`` and ``objective`` as names."""
        names = {"architecture": self.architecture.name, "objective": self.objective.name}
        return {**asdict(self), **asdict(self.architecture), **asdict(self.objective), **names}

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of a step, from 0.

        It falls linearly to 0 at ``steps``, unless the objective has a constant rate. In the first
        ``warmup_steps``, it also rises linearly. With the schedule ``sgd``, it is the maximum.
        """
        if self.objective.schedule == "sgd":
            return self.architecture.learning_rate
        warmup = min(1.0, (step + 1) / self.warmup_steps)
        decay = 1.0 if self.objective.constant else 1 - step / self.steps
        return self.architecture.learning_rate * warmup * decay


def training_options(
    architecture: str = BagOptions.name,
    objective: str = RankingOptions.name,
    **values: Any,  # noqa: ANN401
) -> TrainingOptions:
    """Build options of an architecture, an objective and the training loop.

    ``values`` are by name, from ``option_fields``. Other options have their defaults.

    Raises:
        ValueError: A value is not allowed, or an option is unknown or does not apply.
    """
    parts = [
        _choose("architecture", architecture, ARCHITECTURES),
        _choose("objective", objective, OBJECTIVES),
        TrainingOptions,
    ]
    chosen = [
        {name: values.pop(name) for name in option_fields(part) & values.keys()} for part in parts
    ]
    for name in values:
        raise ValueError(
            f"--{name.replace('_', '-')} does not apply to --architecture {architecture} with "
            f"--objective {objective}; omit it"
        )
    made = {"architecture": parts[0](**chosen[0]), "objective": parts[1](**chosen[1])}
    return TrainingOptions(**made, **chosen[2])


def _choose(name: str, value: str, choices: Mapping[str, type]) -> type:
    if value not in choices:
        raise ValueError(f"--{name} {value}: choose one of {', '.join(choices)}")
    return choices[value]


@dataclass(frozen=True, kw_only=True)
class TaskBeside:
    """A task of ``AUXILIARY_TASKS``, its text, and its batches per main one."""

    name: str
    folder: Path
    weight: float = 1.0

    def check(self) -> None:
        """Check the name and the weight.

        Raises:
            ValueError: The name is unknown, or the weight is not a finite number above 0.
        """
        if self.name not in AUXILIARY_TASKS:
            known = ", ".join(AUXILIARY_TASKS)
            raise ValueError(f"--task {self.name}: is unknown; choose one of {known}")
        if not 0 < self.weight < math.inf:
            raise ValueError(
                f"--task {self.name}: the weight is {self.weight}; expected a finite number above 0"
            )


def named_tasks(tasks: Sequence[TaskBeside]) -> dict[str, TaskBeside]:
    """Return auxiliary tasks by unique names, in order.

    The name is the kind's, from the second of a kind on with a number, as ``quick-thought-2``.

    Raises:
        ValueError: Two tasks of a kind have the same folder.
    """
    tasks_named: dict[str, TaskBeside] = {}
    for task in tasks:
        folders = [one.folder for one in tasks_named.values() if one.name == task.name]
        if task.folder in folders:
            raise ValueError(
                f"--task {task.name}: {task.folder} is given twice; pass it once, with a weight"
            )
        tasks_named[f"{task.name}-{len(folders) + 1}" if folders else task.name] = task
    return tasks_named


class Recipe(ValidatedOptions):
    """The text and the options of a training.

    ValueError says that an option, a weight or a name is not allowed, or that options conflict.

    Attributes:
        files: the files of text, by language pair or other name (from ``reading.find_text``).
        exclude: the names of corpora to skip.
        corpus_weights: by corpus, the probability that a pass uses its pairs, by default 1.
        pair_weights: by language pair, a factor of its sampling rate, by default 1.
        tasks: auxiliary tasks by name (from ``named_tasks``).
        best_by: the measure that chooses the best encoder, not the objective's by default.
    """

    files: Mapping[str, tuple[Path, ...]]
    exclude: frozenset[str] = frozenset()
    corpus_weights: Mapping[str, float] = field(default_factory=dict)
    pair_weights: Mapping[str, float] = field(default_factory=dict)
    tasks: Mapping[str, TaskBeside] = field(default_factory=dict)
    vocabulary_size: int = option(48_000, "number of subwords, such as 8000 for little text", low=1)
    vocabulary_model: str = option(
        "unigram", "subwords by unigram model or byte-pair encoding", choices=("unigram", "bpe")
    )
    vocabulary_exponent: float = option(
        0.0,
        "exponent of a language pair's size in its share of the text that subwords are learned "
        "from: 1 for proportional shares, 0 for equal shares",
        high=1,
    )
    evaluate_every: int = option(5_000, "steps between evaluations; OUT keeps the best", low=1)
    held_out: int = option(500, "pairs per language pair only to evaluate on, up to half", low=1)
    best_by: str = HELD_OUT_ERROR
    options: TrainingOptions = field(default_factory=TrainingOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        objective = self.options.objective
        for name, weight in self.corpus_weights.items():
            if not 0 <= weight <= 1:
                raise ValueError(f"--corpus-weight {name}={weight}: expected 0 to 1")
        for task in self.tasks.values():
            task.check()
            if objective.one_sided or objective.apart:
                raise ValueError(
                    f"--task {task.name} conflicts with --objective {objective.name}, which trains "
                    "no encoder of all languages; omit --task"
                )
        if objective.apart and self.pair_weights:
            raise ValueError(
                f"--pair-weight conflicts with --objective {objective.name}, which samples all "
                "languages equally; omit it"
            )
        for name, weight in self.pair_weights.items():
            if name not in self.files:
                known = ", ".join(self.files)
                raise ValueError(
                    f"--pair-weight {name}: the training has no such text; choose among {known}"
                )
            if not 0 < weight < math.inf:
                raise ValueError(f"--pair-weight {name}={weight}: expected a finite number above 0")
