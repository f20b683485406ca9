"""The context of a run, which its stages share within one process."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from encoder import Encoder, load_encoder
from encoder.joined import select_parts
from encoder.words import WordEncoder, word_encoders
from miner.storage.layout import SIDES, WorkFolder
from pipelines.options import WHOLE_JOB, Job, MiningOptions
from pipelines.progress import Monitor

# Each reference of a stage has its own context.
_work_folder = lru_cache(maxsize=64)(WorkFolder)


class _Encoders:
    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._loaded: Encoder | None = None
        self._prepared: dict[tuple[str, str | None], Encoder] = {}
        self._words: dict[tuple[str | None, ...], tuple[WordEncoder, ...]] = {}

    def get(self, whole: MiningOptions, spec: str, language: str | None) -> Encoder:
        with self._loading:
            if self._loaded is None:
                self._loaded = load_encoder(whole.encoder, precision=whole.precision)
            if (spec, language) not in self._prepared:
                selected = select_parts(self._loaded, spec)
                self._prepared[spec, language] = selected.for_language(language)
            return self._prepared[spec, language]

    def words(self, encoder: Encoder | None, *languages: str | None) -> tuple[WordEncoder, ...]:
        with self._loading:
            if languages not in self._words:
                self._words[languages] = word_encoders(encoder, languages)
            return self._words[languages]


@dataclass(eq=False)
class RunContext:
    """A part of a run, with its options and the run's encoders.

    ``part`` is the part's name in ``job.parts``. ``options`` are its options, and ``folder`` has
    the paths in its work folder. ``monitor`` receives the run's progress. Contexts made from this
    one share its encoders. An encoder that was loaded stays if the options change.
    """

    job: Job
    monitor: Monitor = field(default_factory=Monitor)
    part: str = WHOLE_JOB
    _encoders: _Encoders = field(default_factory=_Encoders)

    def __post_init__(self) -> None:
        self.options = self.job.parts[self.part]
        self.folder = _work_folder(self.options.work_dir, self.options.corpus_names)

    def for_part(self, part: str) -> RunContext:
        """Return the context of a part of the same run, or raise KeyError."""
        return replace(self, monitor=self.monitor.for_part(part), part=part)

    def with_options(self, **changes: object) -> RunContext:
        """Return the context of the whole run, with changed options in all parts."""
        parts = {name: replace(part, **changes) for name, part in self.job.parts.items()}  # type: ignore[arg-type]
        return self.with_part_options(parts)

    def with_part_options(self, parts: Mapping[str, MiningOptions]) -> RunContext:
        """Return the whole run's context, with ``parts`` added or replaced."""
        job = replace(self.job, parts={**self.job.parts, **parts})
        return replace(self, job=job, part=WHOLE_JOB)

    def encoder(self, language: str | None = None) -> Encoder:
        """Return this part's encoder of a language, loaded at first use.

        ``language`` is a code, or None if unknown. ValueError says that the encoder is unknown or
        damaged, lacks the language, or cannot run in the run's precision. ModuleNotFoundError says
        that its package is not installed.
        """
        return self._encoders.get(self.job.whole, self.options.encoder, language)

    def side_encoder(self, side: str) -> Encoder:
        """Return ``encoder`` of the language of ``side``, "source" or "target"."""
        return self.encoder(self.options.side(side).effective_language)

    @property
    def encoder_name(self) -> str:
        """The names of both sides' encoders, joined by "+" unless equal.

        It is "precomputed" for precomputed vectors, or can raise the errors of ``encoder``.
        """
        if self.options.source.embeddings is not None:
            return "precomputed"
        return _joined(self.side_encoder(side) for side in SIDES)

    @property
    def words_name(self) -> str:
        """The distinct names of ``word_encoders``, joined by "+", or its errors."""
        return _joined(self.word_encoders())

    def word_encoders(self) -> tuple[WordEncoder, ...]:
        """Return the encoders of single words of source and target.

        They are the bundled encoder for precomputed vectors, or if the run's encoder has no words.
        Errors of ``encoder`` and ``encoder.words.word_encoders`` are raised.
        """
        encoder = None if self.options.source.embeddings is not None else self.encoder()
        return self._encoders.words(encoder, *self.languages)

    @property
    def languages(self) -> list[str | None]:
        """The language codes of source and target, None if unknown."""
        return [self.options.side(side).effective_language for side in SIDES]


def _joined(encoders: Iterable[Encoder | WordEncoder]) -> str:
    return "+".join(dict.fromkeys(encoder.name for encoder in encoders))
