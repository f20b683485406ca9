"""Compile inner loops with Numba, with its cache on disk where there is a place for one."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from numba import njit
from numba.core.runtime.nrt import rtsys

import miner.instructions  # noqa: F401  # decides what CPU Numba compiles for


def compiled(fastmath: bool | set[str] = False) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function when it is first called.

    Its code releases the interpreter's lock and is kept on disk; where neither the package's folder
    nor the user's can be written, or the disk is full, each process compiles it again.
    """

    def compile_function(function: Callable[..., Any]) -> Any:  # noqa: ANN401
        try:
            found = njit(function, cache=True, **_options(fastmath))
        except RuntimeError:  # no place for a cache
            return njit(function, **_options(fastmath))
        save, load = found._cache.save_overload, found._cache._load_overload

        def save_if_there_is_room(*compiled: object) -> None:
            with suppress(OSError):
                save(*compiled)

        def load_alone(signature: object, context: Any) -> Any:  # noqa: ANN401
            # Numba's own loads all that it compiles with before, which takes 0.3 s.
            rtsys.initialize(context)
            with found._cache._guard_against_spurious_io_errors():
                return load(signature, context)

        found._cache.save_overload = save_if_there_is_room
        found._cache.load_overload = load_alone
        return found

    return compile_function


def compiled_part(fastmath: bool | set[str] = False) -> Callable[[Any], Any]:
    """Return a decorator for a function that only compiled ones call: it becomes part of them.

    On its own it would be optimised once more for each that calls it, and a process that compiles
    would run another version than one that loads what is kept: sums are rounded in another order.
    """
    return cast("Callable[[Any], Any]", njit(forceinline=True, **_options(fastmath)))


def _options(fastmath: bool | set[str]) -> dict[str, Any]:
    return {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
