"""What an installation must hold: one version, the commands, the data files, exact pins."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, version
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("miner", "pipelines", "encoder", "eval")
SCRIPTS = {
    "mine-corpus",
    "embed-corpus",
    "bucc-score",
    "eval-encoder",
    "train-encoder",
    "fetch-laser",
}


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def package_folder(package: str) -> Path:
    return Path(str(files(package)))


def distribution_name(requirement: str) -> str:
    match = re.match(r"[\w.-]+", requirement)
    assert match, requirement
    return match.group().lower().replace("_", "-")


def test_the_installed_version_is_the_declared_one(pyproject: dict[str, Any]) -> None:
    assert version("bitext-adit") == pyproject["project"]["version"]


def test_the_changelog_knows_the_version(pyproject: dict[str, Any]) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## [{pyproject['project']['version']}]" in changelog


def test_no_module_repeats_the_version() -> None:
    sources = [path for package in PACKAGES for path in package_folder(package).rglob("*.py")]
    written = re.compile(r"^__version__ *(: *\w+ *)?= *[\"']", re.MULTILINE)
    assert [path for path in sources if written.search(path.read_text(encoding="utf-8"))] == []


def test_every_command_resolves_to_a_callable(pyproject: dict[str, Any]) -> None:
    scripts = distribution("bitext-adit").entry_points.select(group="console_scripts")
    assert {script.name for script in scripts} == SCRIPTS == set(pyproject["project"]["scripts"])
    for script in scripts:
        assert callable(script.load()), script


@pytest.mark.parametrize("name", ["*.safetensors", "tokenizer.model", "config.json"])
def test_the_bundled_encoder_is_present(name: str) -> None:
    found = list((package_folder("encoder") / "assets").rglob(name))
    assert found
    assert all(path.stat().st_size > 0 for path in found)


@pytest.mark.parametrize("part", ["de", "en", "gold"])
def test_the_sample_corpus_is_present(part: str) -> None:
    sample = package_folder("eval") / "assets" / "sample" / "de-en" / f"de-en.training.{part}"
    assert sample.stat().st_size > 0


@pytest.mark.parametrize("package", PACKAGES)
def test_the_package_data_covers_every_data_file(package: str, pyproject: dict[str, Any]) -> None:
    folder = package_folder(package)
    data = {
        path
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix != ".py"
        and path.name != ".DS_Store"
        and path.parent.name != "__pycache__"  # Python's compiled code, and Numba's
    }
    declared = pyproject["tool"]["setuptools"]["package-data"]
    patterns = declared.get("*", []) + declared.get(package, [])
    covered = {path for pattern in patterns for path in folder.glob(pattern)}
    assert folder / "py.typed" in data
    assert data - covered == set()


def test_what_beam_sends_to_workers_holds_every_stage(tmp_path: Path) -> None:
    """``--setup_file ./setup.py`` makes a source distribution as here, and installs it there."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    build = [sys.executable, "setup.py", "-q", "sdist", "--dist-dir", str(tmp_path)]
    subprocess.run(build, cwd=tree, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path / "sent", filter="data")
    (sent,) = (tmp_path / "sent").iterdir()
    code = "import pipelines.run.graph, pipelines.run.worker, encoder; encoder.load_encoder()"
    code += "; print(pipelines.run.graph.__file__)"
    measured = {name for name in os.environ if name.startswith("COVERAGE")}  # not of this copy
    rest = {name: value for name, value in os.environ.items() if name not in measured}
    alone = rest | {"PYTHONPATH": str(sent)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=alone,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == str(sent / "pipelines" / "run" / "graph.py")


def test_every_direct_requirement_has_an_exact_pin(pyproject: dict[str, Any]) -> None:
    project = pyproject["project"]
    extras = [one for extra in project["optional-dependencies"].values() for one in extra]
    required = {distribution_name(one) for one in project["dependencies"] + extras}
    required.discard(project["name"])  # an extra that has all of others
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
    assert {distribution_name(pin) for pin in pins} == required
