"""Curves of a training: the loss and the held-out figures over the steps, as SVG."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

FIGURES = {"loss": "training loss", "error": "held-out error", "perplexity": "held-out perplexity"}


def draw_curves(history: Sequence[Mapping[str, Any]]) -> bytes:
    """One field for each of ``FIGURES`` that was measured.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    measured = [name for name in FIGURES if name in history[0]]
    steps = [entry["step"] for entry in history]
    figure = Figure(figsize=(4.5 * len(measured), 3.5), layout="constrained")
    fields = figure.subplots(1, len(measured), squeeze=False)[0]
    for name, axes in zip(measured, fields, strict=True):
        axes.plot(steps, [entry[name] for entry in history], marker=".", color="black")
        axes.set(title=FIGURES[name], xlabel="steps", ylim=(0, None))
        if name == "error":
            for pair in history[0]["errors"]:
                axes.plot(
                    steps, [entry["errors"][pair] for entry in history], alpha=0.5, label=pair
                )
            axes.legend(fontsize="x-small", ncols=2)
    image = io.BytesIO()
    with rc_context({"svg.hashsalt": "curves"}):
        figure.savefig(image, format="svg", metadata={"Date": None})
    return image.getvalue()
