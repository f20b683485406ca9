"""Who may import whom, and what may not be loaded before it is used."""

import ast
import json
import subprocess
import sys
import tomllib
from collections.abc import Container, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAY_IMPORT: dict[str, set[str]] = {
    "encoder": set(),
    "miner": set(),
    "eval": {"miner", "encoder"},
    "pipelines": {"miner", "encoder", "eval"},
}
# Modules of other packages that a package may import.
COMPILED = {
    *("miner.compiling", "miner.instructions", "miner.knn.core.int8", "miner.knn.core.products")
}
READERS = {  # of training text
    *("miner.storage.streams", "miner.storage.pair_files"),
    *("miner.storage.pair_files.base", "miner.storage.pair_files.moses"),
}
ALSO = {"encoder": {"miner.threads", "miner.language_codes", *COMPILED, *READERS}}
NO_PACKAGE = {"tests", "benchmarks"}
# Of these packages each part imports from those before it only.
FLOORS = {
    "eval": (
        *({"metrics"}, {"data"}, {"output"}, {"mined"}, {"runs", "tasks", "scoring"}),
        *({"report"}, {"cli"}),
    ),
    "pipelines": (
        *({"options", "progress", "references", "making_options"}, {"memory"}),
        *({"context"}, {"stages"}, {"many"}, {"run"}, {"cli"}),
    ),
}
HEAVY = ("torch", "apache_beam", "faiss", "numba", "pyarrow", "numpy")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SCRIPTS: dict[str, str] = PYPROJECT["project"]["scripts"]


def imported_modules(code: str, known: Container[str] = ()) -> Iterator[str]:
    """Names of the modules that the code imports absolutely, wherever in it the import stands.

    What is imported from a package is a module if it is ``known`` as one.
    """
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = ((f"{node.module}.{alias.name}", node.module or "") for alias in node.names)
            yield from dict.fromkeys(name if name in known else module for name, module in names)
        elif isinstance(node, ast.Call) and node.args:
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
            target = node.args[0]
            if name in {"import_module", "__import__"} and isinstance(target, ast.Constant):
                yield str(target.value)


def forbidden_imports(package: str, code: str) -> list[str]:
    forbidden = (MAY_IMPORT.keys() | NO_PACKAGE) - MAY_IMPORT[package] - {package}
    return [
        name
        for name in imported_modules(code)
        if name.partition(".")[0] in forbidden and name not in ALSO.get(package, ())
    ]


def loaded_heavy_modules(code: str) -> list[str]:
    """Which of HEAVY a fresh interpreter has loaded once it has run the code."""
    report = "import json, sys; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stderr
    modules = json.loads(run.stderr.splitlines()[-1])
    return [name for name in HEAVY if name in modules]


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_those_it_may(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    found = {
        str(path.relative_to(ROOT)): forbidden_imports(package, path.read_text(encoding="utf-8"))
        for path in files
    }
    assert {name: imports for name, imports in found.items() if imports} == {}


@pytest.mark.parametrize(
    ("package", "code", "expected"),
    [
        ("miner", "import encoder", ["encoder"]),
        ("miner", "def late():\n    from encoder.bag.encoder import Bag", ["encoder.bag.encoder"]),
        ("encoder", "if TYPE_CHECKING:\n    import miner.arrays", ["miner.arrays"]),
        ("encoder", "importlib.import_module('eval.metrics.bucc')", ["eval.metrics.bucc"]),
        ("eval", "import miner, encoder, pipelines", ["pipelines"]),
        ("pipelines", "from tests.oracle import oracle", ["tests.oracle"]),
        ("encoder", "from eval.metrics.bucc import score", ["eval.metrics.bucc"]),
        (
            "encoder",
            "from miner.threads import run_in_threads\nfrom miner import threads",
            ["miner"],
        ),
        ("miner", "from . import encoder\nfrom miner import eval\nimport minerals", []),
    ],
)
def test_the_check_sees_every_kind_of_import(package: str, code: str, expected: list[str]) -> None:
    assert forbidden_imports(package, code) == expected


def floor(package: str, part: str) -> int:
    (found,) = [place for place, parts in enumerate(FLOORS[package]) if part in parts]
    return found


def not_below(package: str, part: str, code: str) -> list[str]:
    """The package's own imports that are neither of the same part nor from a floor below."""
    own = [name.split(".") for name in imported_modules(code) if name.startswith(f"{package}.")]
    return [
        ".".join(names)
        for names in own
        if names[1] != part and floor(package, names[1]) >= floor(package, part)
    ]


@pytest.mark.parametrize("package", FLOORS)
def test_a_part_imports_from_floors_below_only(package: str) -> None:
    found = {}
    for path in (ROOT / package).rglob("*.py"):
        part = path.relative_to(ROOT / package).parts[0].removesuffix(".py")
        if part != "__init__":
            code = path.read_text(encoding="utf-8")
            found[str(path.relative_to(ROOT))] = not_below(package, part, code)
    assert len(found) > 30
    assert {name: imports for name, imports in found.items() if imports} == {}


@pytest.mark.parametrize(
    ("package", "part", "code", "expected"),
    [
        ("eval", "metrics", "from eval.data.bucc import load_bucc", ["eval.data.bucc"]),
        ("eval", "runs", "def late():\n    from eval.tasks.bucc import run", ["eval.tasks.bucc"]),
        (
            "eval",
            "report",
            "from eval.runs.store import Run\nfrom eval.report.charts import Chart",
            [],
        ),
        ("eval", "data", "from eval.output import Table", ["eval.output"]),
        (
            *("pipelines", "stages", "from pipelines.run.mining import run_job"),
            ["pipelines.run.mining"],
        ),
    ],
)
def test_the_check_sees_imports_from_above(
    package: str, part: str, code: str, expected: list[str]
) -> None:
    assert not_below(package, part, code) == expected


def imports_between(codes: Mapping[str, str]) -> dict[str, set[str]]:
    """Which of some modules each one imports, wherever in it the import stands.

    ``encoder`` itself does not count: it names the encoders, and loads their modules when called.
    """
    counted = codes.keys() - {"encoder"}
    return {
        name: counted & set(imported_modules(code, codes)) - {name} for name, code in codes.items()
    }


def test_modules_import_each_other_in_no_circle() -> None:
    codes = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): (
            path.read_text(encoding="utf-8")
        )
        for package in MAY_IMPORT
        for path in (ROOT / package).rglob("*.py")
    }
    graph = imports_between(codes)
    assert sum(map(len, graph.values())) > 500
    TopologicalSorter(graph).prepare()  # raises an error that names a circle


def test_the_check_sees_circles() -> None:
    codes = {
        "miner.a": "from miner import b",
        "miner": "",
        "miner.b": "def late():\n    from miner.c import x",
        "miner.c": "if TYPE_CHECKING:\n    import miner.a",
        "encoder": "from encoder.d import x",
        "encoder.d": "from encoder import x",
    }
    graph = imports_between(codes)
    assert graph["miner.a"] == {"miner.b"}
    with pytest.raises(CycleError, match=r"miner\.c"):
        TopologicalSorter(graph).prepare()
    TopologicalSorter({**graph, "miner.c": set()}).prepare()


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_importing_a_package_loads_nothing_heavy(package: str) -> None:
    assert loaded_heavy_modules(f"import {package}") == []


def test_help_and_version_load_nothing_heavy() -> None:
    """Of every script, subcommand and evaluation task, in one interpreter."""
    scripts = {script: where.split(":") for script, where in SCRIPTS.items()}
    code = f"""
import contextlib, importlib, io, sys
from eval.tasks import TASKS
from pipelines.cli.main import COMMANDS
calls = [(*where, [script], []) for script, where in {scripts}.items()]
main = "pipelines.cli.main", "adit"
calls += [(*main, ["adit"], [name]) for name in COMMANDS]
calls += [(*main, ["adit"], ["evaluate", task]) for task in TASKS]
for module, function, name, arguments in calls:
    for option in ("--help", "--version"):
        if option == "--version" and len(arguments) > 1:
            continue
        sys.argv = [*name, *arguments, option]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                status = getattr(importlib.import_module(module), function)()
            except SystemExit as stop:
                status = stop.code
        assert not status and out.getvalue().strip() and "%" * 2 not in out.getvalue(), sys.argv
        allowed = ["numpy"] if len(arguments) > 1 else []  # the options of tasks need it
        loaded = [heavy for heavy in {HEAVY} if heavy in sys.modules and heavy not in allowed]
        assert not loaded, (sys.argv, loaded)
"""
    assert loaded_heavy_modules(code) in ([], ["numpy"])


def test_the_check_sees_what_is_loaded() -> None:
    assert "pyarrow" in loaded_heavy_modules("import pyarrow")
