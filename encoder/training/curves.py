"""Curves of a training: the loss and all that was measured over the steps, as SVG."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

FIGURES = {"loss": "training loss", "perplexity": "held-out perplexity"}
LEGEND_ROWS = 12
COLORS = "tab20"


def draw_curves(history: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> bytes:
    """A field for each figure in the history: of ``FIGURES``, and of the measures in ``titles``.

    Measures are drawn for each of their parts, too, in per cent. Where the best encoder was found
    is marked in all fields.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib import colormaps, rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    named = {name: title for name, title in FIGURES.items() if name in history[0]}
    named.update(titles)
    steps = [entry["step"] for entry in history]
    best = [entry["step"] for entry in history if entry["best"]][-1]
    figure = Figure(figsize=(5 * len(named), 3.5), layout="constrained")
    fields = figure.subplots(1, len(named), squeeze=False)[0]
    for (name, title), axes in zip(named.items(), fields, strict=True):
        percent = 100 if name in titles else 1
        parts = history[0]["parts"].get(name, {})
        if len(parts) > 1:
            for number, part in enumerate(parts):
                values = [percent * entry["parts"][name][part] for entry in history]
                color = colormaps[COLORS](number % colormaps[COLORS].N)
                axes.plot(steps, values, color=color, linewidth=1, label=part)
        values = [percent * entry[name] for entry in history]
        axes.plot(steps, values, marker=".", color="black", label="mean" if parts else None)
        axes.axvline(best, color="gray", linewidth=0.8, linestyle=":")
        axes.set(title=f"{title}, %" if name in titles else title, xlabel="steps", ylim=(0, None))
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.spines[["top", "right"]].set_visible(False)
        if len(parts) > 1:
            axes.legend(
                loc="center left",
                bbox_to_anchor=(1, 0.5),
                ncols=-(-(len(parts) + 1) // LEGEND_ROWS),
                fontsize="small",
                frameon=False,
            )
    image = io.BytesIO()
    with rc_context({"svg.hashsalt": "curves"}):
        figure.savefig(image, format="svg", metadata={"Date": None})
    return image.getvalue()
