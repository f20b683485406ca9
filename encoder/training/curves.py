"""Learning curves of a training as SVG."""

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIGURES = {"loss": "training loss", "perplexity": "held-out perplexity"}
COLUMNS = 3  # plots per row
LEGEND_ROWS = 12


def draw_curves(history: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> bytes:
    """Draw the learning curves of a training, and return the bytes of an SVG.

    ``history``, not empty, is as in ``State``: per evaluation, ``step``, whether it is ``best`` so
    far, figures and measures' means by name, and measures by part in ``parts``. Losses, perplexity
    and, in percent, the measures (0 to 1) in ``titles``, by name, are drawn, with a curve per part
    of several. ImportError says that matplotlib is missing.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    titles_by_name = {name: title for name, title in FIGURES.items() if name in history[0]}
    titles_by_name |= {name: name for name in history[-1] if name.endswith(" loss")}
    titles_by_name |= {name: f"{title}, %" for name, title in titles.items()}
    columns = min(COLUMNS, len(titles_by_name))
    rows = -(-len(titles_by_name) // columns)
    figure = Figure(figsize=(5 * columns, 3.5 * rows), layout="constrained")
    fields = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axes, (name, title) in zip(fields, titles_by_name.items(), strict=False):
        _draw(axes, history, name)
        axes.set(title=title, xlabel="steps", ylim=(0, None))
    for axes in fields[len(titles_by_name) :]:
        axes.set_axis_off()
    image = io.BytesIO()
    with rc_context({"svg.hashsalt": "curves"}):
        figure.savefig(image, format="svg", metadata={"Date": None})
    return image.getvalue()


def _draw(axes: "Axes", history: Sequence[Mapping[str, Any]], name: str) -> None:
    from matplotlib import colormaps
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    best = [entry["step"] for entry in history if entry["best"]][-1]
    history = [entry for entry in history if name in entry]
    steps = [entry["step"] for entry in history]
    parts = history[-1]["parts"].get(name)
    has_parts = len(parts or ()) > 1
    if has_parts:
        # The legend has the order of the lines' last values.
        for number, part in enumerate(sorted(parts, key=lambda one: -parts[one])):
            values = [100 * entry["parts"][name][part] for entry in history]
            axes.plot(steps, values, color=colormaps["tab20"](number % 20), label=part)
    values = [(100 if parts else 1) * entry[name] for entry in history]
    axes.plot(steps, values, color="black", marker=".", label="mean")
    axes.axvline(best, color="gray", linestyle=":", label="best")
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.spines[["top", "right"]].set_visible(False)
    if has_parts:
        columns = -(-(len(parts) + 2) // LEGEND_ROWS)
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), ncols=columns, frameon=False)
    else:
        place: dict[str, Any] = {"ha": "right", "va": "top", "rotation": 90}
        axes.annotate("best", (best, 1), xycoords=("data", "axes fraction"), color="gray", **place)
