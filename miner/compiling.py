"""Compile inner loops with Numba, with its cache on disk where there is a place for one."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit


def compiled(fastmath: bool | set[str] = False) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function when it is first called.

    The compiled code releases the interpreter's lock. It is kept on disk; where neither the
    package's folder nor the user's can be written, or the disk is full, each process compiles it
    again.
    """

    def compile_function(function: Callable[..., Any]) -> Any:  # noqa: ANN401
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
        try:
            found = njit(function, cache=True, **options)
        except RuntimeError:  # no place for a cache
            return njit(function, **options)
        save = found._cache.save_overload

        def save_if_there_is_room(*compiled: object) -> None:
            with suppress(OSError):
                save(*compiled)

        found._cache.save_overload = save_if_there_is_room
        return found

    return compile_function
