"""What an installation must hold: one version, the commands, the data files, consistent pins."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, version
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from miner.extras import DISTRIBUTION, EXTRAS

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("miner", "pipelines", "encoder", "eval")
FILTERS = hasattr(tarfile, "data_filter")


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def package_folder(package: str) -> Path:
    return Path(str(files(package)))


def requirements(pyproject: dict[str, Any], extras: set[str]) -> list[Requirement]:
    """Return what the base and the extras require directly, those of nested extras included."""
    project = pyproject["project"]
    lines = list(project["dependencies"])
    seen: set[str] = set()
    while extras - seen:
        extra = min(extras - seen)
        seen.add(extra)
        for one in map(Requirement, project["optional-dependencies"][extra]):
            if one.name == DISTRIBUTION:
                extras = extras | one.extras
            else:
                lines.append(str(one))
    return [Requirement(line) for line in lines]


def names(requirements: list[Requirement]) -> set[str]:
    return {canonicalize_name(one.name) for one in requirements}


def read_pins() -> dict[str, Version]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): Version(pinned) for name, pinned in pins}


def test_the_installed_version_is_the_declared_one(pyproject: dict[str, Any]) -> None:
    assert version("bitext-adit") == pyproject["project"]["version"]


def test_the_changelog_knows_the_version(pyproject: dict[str, Any]) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## [{pyproject['project']['version']}]" in changelog


def test_the_deployment_takes_the_image_of_the_version(pyproject: dict[str, Any]) -> None:
    deployment = (ROOT / "deploy" / "flink.yaml").read_text(encoding="utf-8")
    assert re.findall(r"adit-worker:(\S+)", deployment) == [pyproject["project"]["version"]]


def test_the_citation_is_of_the_version_and_as_its_readers_take_it(
    pyproject: dict[str, Any],
) -> None:
    citation = ROOT / "CITATION.cff"
    assert f"\nversion: {pyproject['project']['version']}\n" in citation.read_text("utf-8")
    schema = ("--builtin-schema", "vendor.citation-file-format")
    command = [sys.executable, "-m", "check_jsonschema", *schema, str(citation)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_module_repeats_the_version() -> None:
    sources = [path for package in PACKAGES for path in package_folder(package).rglob("*.py")]
    written = re.compile(r"^__version__ *(: *\w+ *)?= *[\"']", re.MULTILINE)
    assert [path for path in sources if written.search(path.read_text(encoding="utf-8"))] == []


def test_every_command_resolves_to_a_callable(pyproject: dict[str, Any]) -> None:
    scripts = distribution("bitext-adit").entry_points.select(group="console_scripts")
    assert {script.name for script in scripts} == set(pyproject["project"]["scripts"])
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
    """``--setup_file ./setup.py`` makes a source distribution as here, and installs it there.

    It is compressed there besides, which takes seconds.
    """
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    build = [sys.executable, "setup.py", "-q", "sdist", "--formats=tar"]
    build += ["--dist-dir", str(tmp_path)]
    subprocess.run(build, cwd=tree, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar")
    with tarfile.open(archive) as packed:  # of our own files; Python 3.11.2 knows no filter
        packed.extractall(tmp_path / "sent", **({"filter": "data"} if FILTERS else {}))
    (sent,) = (tmp_path / "sent").iterdir()
    code = "import pipelines.run.beam, pipelines.run.worker, encoder; encoder.load_encoder()"
    code += "; print(pipelines.run.beam.__file__)"
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
    assert done.stdout.strip() == str(sent / "pipelines" / "run" / "beam.py")


def every_extra(pyproject: dict[str, Any]) -> set[str]:
    return set(pyproject["project"]["optional-dependencies"])


def test_every_direct_requirement_has_a_pin_that_it_admits(pyproject: dict[str, Any]) -> None:
    required = requirements(pyproject, every_extra(pyproject))
    pins = read_pins()
    assert names(required) == set(pins)
    for one in required:
        assert pins[canonicalize_name(one.name)] in one.specifier, one


def unmet(pins: dict[str, Version], extras: dict[str, set[str]]) -> list[str]:
    """Return the requirements, of the pinned packages and all that these need, that a pin breaks.

    What is installed is read at the versions that are installed, and on Linux and Python of here.
    """
    found, seen, queue = [], set(), list(pins)
    while queue:
        name = queue.pop()
        try:
            lines = [] if name in seen else distribution(name).requires or []
        except PackageNotFoundError:
            continue
        seen.add(name)
        for one in map(Requirement, lines):
            asked = {"", *extras.get(name, ())}
            if one.marker and not any(
                one.marker.evaluate({"extra": extra, "platform_system": "Linux"}) for extra in asked
            ):
                continue
            needed = canonicalize_name(one.name)
            queue.append(needed)
            if needed in pins and not one.specifier.contains(pins[needed], prereleases=True):
                found.append(f"{name} requires {one}; {needed}=={pins[needed]} is pinned")
    return found


def test_the_pins_satisfy_what_the_packages_require_of_one_another(
    pyproject: dict[str, Any],
) -> None:
    asked = {
        canonicalize_name(one.name): one.extras
        for one in requirements(pyproject, every_extra(pyproject))
    }
    pins = read_pins()
    assert unmet(pins, asked) == []
    assert any("numpy==1.0" in line for line in unmet(pins | {"numpy": Version("1.0")}, asked))


def test_the_pin_of_triton_is_the_one_of_torch_for_linux() -> None:
    """A CPU build of torch does not require it; PyPI's does, of this version exactly."""
    pypi = {"2.13.0": "3.7.1", "2.15.0": "3.9.0"}  # as in the metadata of PyPI's wheels
    pins = read_pins()
    assert str(pins["triton"]) == pypi[str(pins["torch"])]
    required = [
        one
        for one in map(Requirement, distribution("torch").requires or ())
        if one.name == "triton"
    ]
    if Version(version("torch")).public == str(pins["torch"]):
        assert all(pins["triton"] in one.specifier for one in required)


def test_no_extra_installs_faiss_twice(pyproject: dict[str, Any]) -> None:
    both = {"faiss-cpu", "faiss-gpu"}
    found = {
        extra: names(requirements(pyproject, {extra})) & both for extra in every_extra(pyproject)
    }
    assert found["gpu"] == {"faiss-gpu"}
    assert found["faiss"] == found["all"] == found["dev"] == {"faiss-cpu"}
    assert both not in found.values()


def test_the_base_is_light(pyproject: dict[str, Any]) -> None:
    heavy = {"torch", "apache-beam", "faiss-cpu", "faiss-gpu", "sacremoses"}
    assert names(requirements(pyproject, set())) & heavy == set()


def test_the_extra_named_for_a_module_installs_it(pyproject: dict[str, Any]) -> None:
    distributions = packages_distributions()
    base = names(requirements(pyproject, set()))
    for module, extra in EXTRAS.items():
        direct = names(requirements(pyproject, {extra})) - base
        if module not in distributions:  # an environment made before this extra was
            continue
        further = [distribution(name).requires or () for name in direct]
        brings = direct | names([Requirement(line) for lines in further for line in lines])
        assert brings & {canonicalize_name(one) for one in distributions[module]}, module


def test_the_worker_image_has_the_pinned_beam_and_extras_that_exist(
    pyproject: dict[str, Any],
) -> None:
    text = (ROOT / "docker" / "worker.Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"BEAM=([\d.]+)", text) == [str(read_pins()["apache-beam"])]
    variants = re.findall(r"EXTRAS=([\w,]+)", text)
    assert len(variants) == 2
    for extras in variants:
        assert set(extras.split(",")) <= every_extra(pyproject)
        faiss = names(requirements(pyproject, set(extras.split(",")))) & {"faiss-cpu", "faiss-gpu"}
        assert len(faiss) == 1, extras


def installed_for(extra: str, resolved: dict[str, list[Requirement]]) -> set[str]:
    """Return the packages that the distribution needs with an extra, directly or not.

    ``resolved`` has the requirements of each package.
    """
    seen: set[tuple[str, str]] = set()
    queue = {(DISTRIBUTION, extra), (DISTRIBUTION, "")}
    while queue:
        seen |= queue
        queue = {
            (canonicalize_name(one.name), asked)
            for name, own in queue
            for one in resolved[name]
            if one.marker is None or one.marker.evaluate({"extra": own})
            for asked in ("", *one.extras)
        } - seen
    return {name for name, _ in seen}


@pytest.mark.slow
def test_the_resolved_environments(tmp_path: Path) -> None:
    """What pip would install from the registry, at the newest versions that fit together."""
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    wanted = f"{ROOT}[all,gpu]"
    done = subprocess.run(
        [*command, "--report", str(report), wanted], capture_output=True, text=True, check=False
    )
    if done.returncode and re.search(r"connection|timed out|name resolution", done.stderr, re.I):
        pytest.skip("the package registry cannot be reached")
    assert done.returncode == 0, done.stderr
    found = (one["metadata"] for one in json.loads(report.read_text("utf-8"))["install"])
    resolved = {
        canonicalize_name(one["name"]): [Requirement(line) for line in one.get("requires_dist", ())]
        for one in found
    }
    for extra in ("", "faiss", "gpu", "all"):
        installed = installed_for(extra, resolved)
        faiss = {"": set(), "gpu": {"faiss-gpu"}}.get(extra, {"faiss-cpu"})
        assert installed & {"faiss-cpu", "faiss-gpu"} == faiss, extra
        assert ("torch" in installed) == (extra in ("gpu", "all")), extra
        assert ("apache-beam" in installed) == (extra == "all"), extra


def test_no_repeated_group_is_possessive() -> None:
    """Python before 3.11.5 fails to match these; atomic groups match alike in all versions."""
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert len(sources) > 100
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(r"\)(?:[*+?]|\{\d+(?:,\d*)?\})\+", line)
    ]
    assert not found


def test_arrays_are_loaded_in_one_thread_at_a_time() -> None:
    """Python before 3.11.5 fails at random if threads parse the headers of arrays at once."""
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    found = {
        str(path.relative_to(ROOT))
        for path in sources
        if "np.load(" in path.read_text(encoding="utf-8")
    }
    assert found == {"miner/arrays.py", "encoder/use/weights.py"}  # weights are loaded once
