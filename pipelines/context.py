"""What the stages of a run share within one process."""

from __future__ import annotations

import threading
from dataclasses import replace

from encoder import Encoder, load_encoder
from encoder.words import WordEncoder, word_encoders
from miner.storage.layout import SIDES, WorkFolder
from pipelines.options import MiningOptions
from pipelines.progress import Monitor


class RunContext:
    """A run as its stages see it: its options, the places in its work folder, encoder, progress.

    Several runs may be at work in one process, each with a context of its own.
    """

    def __init__(self, options: MiningOptions, monitor: Monitor | None = None) -> None:
        self.options = options
        self.folder = WorkFolder(options.work_dir)
        self.monitor = monitor or Monitor()
        self._loading = threading.Lock()
        self._loaded: Encoder | None = None
        self._words: tuple[WordEncoder, ...] = ()
        self._prepared: dict[str | None, Encoder] = {}

    def fixed(self, **changes: object) -> RunContext:
        """Return the same run with some options decided, and the encoder that was loaded."""
        context = RunContext(replace(self.options, **changes), self.monitor)  # type: ignore[arg-type]
        context._loaded = self._loaded
        return context

    def encoder(self, language: str | None = None) -> Encoder:
        """Return the run's encoder with what it does to a language; it is loaded once.

        Raises:
            ValueError: there is no such encoder, or it cannot run in the precision asked for.
        """
        with self._loading:
            if self._loaded is None:
                options = self.options
                self._loaded = load_encoder(options.encoder, precision=options.precision)
            if language not in self._prepared:
                self._prepared[language] = self._loaded.for_language(language)
            return self._prepared[language]

    def side_encoder(self, side: str) -> Encoder:
        """Return the run's encoder for the language that a side is in."""
        return self.encoder(self.options.side(side).decided_language)

    @property
    def encoder_name(self) -> str:
        """The names of the encoders of both sides, one if they are the same."""
        if self.options.source.embeddings is not None:
            return "precomputed"
        return "+".join(dict.fromkeys(self.side_encoder(side).name for side in SIDES))

    def word_encoders(self) -> tuple[WordEncoder, ...]:
        """Return what makes the words of both sides.

        Raises:
            ValueError: nothing can.
        """
        encoder = None if self.options.source.embeddings is not None else self.encoder()
        with self._loading:
            if not self._words:
                languages = [self.options.side(side).decided_language for side in SIDES]
                self._words = word_encoders(encoder, languages)
            return self._words
