"""The encoders of a task's sentences: each side's language decides, and nothing else does."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from encoder import Encoder
from eval.data.languages import code_of

Learned = TypeVar("Learned")


def own_encoders(encoder: Encoder, languages: Sequence[str]) -> list[Encoder]:
    """Return the encoder of each language (``deu_Latn`` is ``de``), all in one space."""
    codes = [code_of(language) for language in languages]
    both = encoder.for_languages(codes)
    return [both.for_language(code) for code in codes]


def learner(
    encoder: Encoder, first: str, learn: Callable[[Encoder], Learned]
) -> Callable[..., tuple[Learned, list[Encoder]]]:
    """Return what tells, for languages tested, what was learned from the first and their encoders.

    Of a joined encoder, other languages have other parts: each choice of parts learns once.
    """
    known: dict[str, Learned] = {}

    def of(*languages: str) -> tuple[Learned, list[Encoder]]:
        own, *others = own_encoders(encoder, (first, *languages))
        if own.name not in known:
            known[own.name] = learn(own)
        return known[own.name], others

    return of
