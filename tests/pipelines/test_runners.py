"""The whole graph on other engines than this process: the same bytes, the same one-line errors."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.cli.mine import mine_corpus
from pipelines.references import EmbeddedShard, collect_side
from pipelines.stages.reading.read import read_side
from tests.pipelines.worlds import World, make_world, one_line, write_lines

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def mined(
    tmp_path_factory: pytest.TempPathFactory, sample_sentences: list[str], tiny_encoder: str
) -> tuple[list[str], bytes]:
    """A command line without its output, and what it gives in this process."""
    folder = tmp_path_factory.mktemp("runners")
    write_lines(folder / "src.txt", [*sample_sentences[:60], "", sample_sentences[0]])
    write_lines(folder / "tgt.txt", sample_sentences[300:350])
    run = [*(str(folder / name) for name in ("src.txt", "tgt.txt")), "--encoder", tiny_encoder]
    out = folder / "out.jsonl"
    assert mine_corpus([*run, "-q", "-o", str(out)]) == 0
    return run, out.read_bytes()


@pytest.fixture
def same(mined: tuple[list[str], bytes], tmp_path: Path) -> Iterator:
    """Checks that the run with more options gives the same, and ran in other processes."""
    run, expected = mined

    def same(*options: str) -> None:
        out, work_dir = tmp_path / "out.jsonl", tmp_path / "work"
        own = [*run, "-q", "-o", str(out), "--work-dir", str(work_dir), "--shards", "3"]
        assert mine_corpus([*own, *options]) == 0
        assert out.read_bytes() == expected
        hands = {path.stem.rpartition("-")[2] for path in (work_dir / "progress").glob("*.jsonl")}
        assert hands
        assert str(os.getpid()) not in hands, "stages ran in this process"

    return same


def test_two_worker_processes(
    same: Iterator, mined: tuple[list[str], bytes], tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    same("--workers", "2")
    assert len(list((tmp_path / "work/progress").glob("*.jsonl"))) == 2
    capfd.readouterr()
    blank = write_lines(tmp_path / "blank.txt", ["", ""])
    run = [mined[0][0], str(blank), *mined[0][2:], "-q", "-o", str(tmp_path / "o.tsv")]
    assert mine_corpus([*run, "--workers", "2"]) == 2
    expected = f"{blank}: 2 sentences read, none usable (2 blank); check it and --input-format"
    assert one_line(capfd.readouterr().err, "mine-corpus").endswith(f"error: {expected}\n")


@pytest.mark.slow
def test_the_portable_runner_over_grpc(same: Iterator, tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    command = "from apache_beam.runners.portability.local_job_service import LocalJobServicer; "
    command += "import time; print(LocalJobServicer().start_grpc_server(0), flush=True); "
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", command + "time.sleep(600)"],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
        ) as service,
    ):
        try:
            assert service.stdout is not None
            port = service.stdout.readline().strip()
            worker = f"{sys.executable} -m apache_beam.runners.worker.sdk_worker_main"
            environment = ["--environment_type=beam:env:harness_subprocess_python:v1"]
            environment += [f"--environment_config={worker}"]
            endpoint = f"--job_endpoint=localhost:{port}"
            same("--runner", "PortableRunner", "--", endpoint, *environment)
        finally:
            service.kill()


@pytest.mark.slow
def test_a_dask_cluster_of_two_worker_processes(same: Iterator, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="needs dask[distributed]")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        address = f"--dask_client_address={cluster.scheduler_address}"
        same("--runner", "apache_beam.runners.dask.dask_runner.DaskRunner", "--", address)
        distributed.default_client().close()  # Beam leaves it open


@pytest.mark.parametrize(
    ("runner", "jar", "options"),
    [
        ("FlinkRunner", "FLINK_JOB_SERVER_JAR", ["--flink_master=[local]"]),
        ("SparkRunner", "SPARK_JOB_SERVER_JAR", ["--spark_master_url=local[2]"]),
    ],
)
def test_flink_and_spark(same: Iterator, runner: str, jar: str, options: list[str]) -> None:
    if jar not in os.environ:
        pytest.skip(f"{jar} does not name a jar of Beam's job server for the {runner}")
    named = f"--{runner.removesuffix('Runner').lower()}_job_server_jar={os.environ[jar]}"
    worker = f"{sys.executable} -m apache_beam.runners.worker.sdk_worker_main"
    process = ["--environment_type=PROCESS", f'--environment_config={{"command": "{worker}"}}']
    same("--runner", runner, "--", *options, named, *process)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--runner", "NoRunner"], "--runner NoRunner: unknown to Beam; use FlinkRunner"),
        (
            ["--runner", "DirectRunner", "--", "--flink_mastr=x"],
            "--flink_mastr: unknown option of Beam",
        ),
        (["--runner", "DirectRunner", "--", "--resource_hint=gpu"], "must be NAME=VALUE, such as"),
        (["--workers", "0"], "--workers 0: must be at least 1"),
        (["--shards", "0"], "--shards 0: must be at least 1"),
    ],
)
def test_what_no_engine_understands(
    mined: tuple[list[str], bytes],
    options: list[str],
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert mine_corpus([*mined[0], "-q", "-o", str(tmp_path / "o.tsv"), *options]) == 2
    assert expected in one_line(capsys.readouterr().err, "mine-corpus")
    assert not any(tmp_path.iterdir())


def test_beam_options_without_a_runner(
    mined: tuple[list[str], bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        mine_corpus([*mined[0], "-o", "o.tsv", "--", "--flink_master=x"])
    assert "options after -- require --runner" in capsys.readouterr().err


@pytest.mark.parametrize("handed_on", [[0, 2], [0, 1, 1, 2], []])
def test_a_runner_that_loses_or_repeats_elements_is_found_out(
    tmp_path: Path, handed_on: list[int]
) -> None:
    world = make_world(tmp_path)
    read = read_side(world.run("x.tsv", tmp_path / "work", shards=3), "source")
    shards = [EmbeddedShard(shard=shard, vectors=shard.corpus) for shard in read]
    assert collect_side(shards[::-1], "source") == shards
    with pytest.raises(ValueError, match="use another runner"):
        collect_side([shards[index] for index in handed_on], "source")


def test_accelerators_are_for_the_workers_that_encode(world: World) -> None:
    from apache_beam import Pipeline
    from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner

    from pipelines.options import job_of
    from pipelines.run.beam import build
    from pipelines.run.steps import steps_of

    pipeline = Pipeline(runner=FnApiRunner())
    options = world.options("out.tsv", world.path("work"))
    build(pipeline, steps_of(options), job_of(options), {"accelerator": "type:t4;count:1"})
    components = pipeline.to_runner_api().components
    hinted = {
        transform.unique_name
        for transform in components.transforms.values()
        if components.environments[transform.environment_id].resource_hints
    }
    assert hinted == {"embed_shard"}
