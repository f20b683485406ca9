"""Compile inner loops with Numba, cached on disk if possible."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from numba import njit
from numba.core.runtime.nrt import rtsys

import miner.instructions  # noqa: F401  # sets the CPU that Numba compiles for


def compiled(fastmath: bool | set[str] = False) -> Callable[[Any], Any]:
    """Build a decorator that compiles a function at its first call.

    The machine code releases the interpreter's lock, and divides by zero like NumPy. Where it
    cannot be cached on disk, each process compiles again. ``fastmath`` is as in ``numba.njit``.
    """

    def compile_function(function: Callable[..., Any]) -> Any:  # noqa: ANN401
        try:
            dispatcher = njit(function, cache=True, **_options(fastmath))
        except RuntimeError:  # no folder for a cache
            return njit(function, **_options(fastmath))
        save, load = dispatcher._cache.save_overload, dispatcher._cache._load_overload

        def save_if_there_is_room(*compiled: object) -> None:
            with suppress(OSError):
                save(*compiled)

        def load_without_refresh(signature: object, context: Any) -> Any:  # noqa: ANN401
            # Numba's own function first loads its compiler's registries, which takes 0.3 s.
            rtsys.initialize(context)
            with dispatcher._cache._guard_against_spurious_io_errors():
                return load(signature, context)

        dispatcher._cache.save_overload = save_if_there_is_room
        dispatcher._cache.load_overload = load_without_refresh
        return dispatcher

    return compile_function


def compiled_part(fastmath: bool | set[str] = False) -> Callable[[Any], Any]:
    """Build a decorator that inlines a function into its compiled callers.

    Without inlining, processes that compile would sum in another order than processes that load the
    cache. ``fastmath`` is as in ``numba.njit``.
    """
    return cast("Callable[[Any], Any]", njit(forceinline=True, **_options(fastmath)))


def _options(fastmath: bool | set[str]) -> dict[str, Any]:
    return {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
