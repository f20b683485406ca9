"""Which package of eval may import which: floors, of which each sees those below it only."""

from pathlib import Path

import pytest

from tests.test_rooms import imported_modules

EVAL = Path(__file__).parents[2] / "eval"
FLOORS = ({"metrics"}, {"data", "output"}, {"runs", "tasks", "scoring"}, {"report"}, {"cli"})


def floor(part: str) -> int:
    (found,) = [place for place, parts in enumerate(FLOORS) if part in parts]
    return found


def not_below(part: str, code: str) -> list[str]:
    """The imports from eval that are neither of the same package nor from a floor below."""
    parts = [name.split(".") for name in imported_modules(code) if name.startswith("eval.")]
    return [
        ".".join(names) for names in parts if names[1] != part and floor(names[1]) >= floor(part)
    ]


def test_each_package_imports_from_below_only() -> None:
    found = {}
    for path in EVAL.rglob("*.py"):
        part = path.relative_to(EVAL).parts[0].removesuffix(".py")
        if part != "__init__":
            found[str(path.relative_to(EVAL))] = not_below(part, path.read_text(encoding="utf-8"))
    assert len(found) > 30
    assert {name: imports for name, imports in found.items() if imports} == {}


@pytest.mark.parametrize(
    ("part", "code", "expected"),
    [
        ("metrics", "from eval.data.bucc import load_bucc", ["eval.data.bucc"]),
        ("runs", "def late():\n    from eval.tasks.bucc import run", ["eval.tasks.bucc"]),
        ("report", "from eval.runs.store import Run\nfrom eval.report.charts import Chart", []),
        ("data", "from eval.output import Table", ["eval.output"]),
    ],
)
def test_the_check_sees_imports(part: str, code: str, expected: list[str]) -> None:
    assert not_below(part, code) == expected
