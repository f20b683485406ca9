"""A job on Flink from outside: its progress, its names and counters, its end before its time."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli.mine import mine_corpus
from tests.clusters.cluster import OPENED, ROOT, Daemons, Engine, wait_for
from tests.clusters.test_engines import corpora

pytestmark = [pytest.mark.slow, pytest.mark.clusters]

LINES, SHARDS = 800, 8
RUN = "import sys; from pipelines.cli.mine import mine_corpus; sys.exit(mine_corpus())"


def test_an_interrupted_submitter_cancels_the_job_and_the_same_command_goes_on(
    on_flink: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, work_dir = tmp_path / "out.jsonl", tmp_path / "work"
    run = [*corpora(tmp_path, LINES), "-o", str(out), "--shards", str(SHARDS), "-q"]
    run += ["--encoder", "mini"]
    command = [*run, "--work-dir", str(work_dir), *on_flink.options]
    # Like a terminal's, the interrupt reaches the whole group: the job server, too.
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE + RUN, *command],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        wait_for(lambda: [*work_dir.glob("embeddings/*/*/seal.json")])
        capsys.readouterr()
        assert mine_corpus(["status", str(work_dir)]) == 0
        status = capsys.readouterr().out
        assert status.startswith(f"{work_dir}: running\n")
        assert re.search(r"^  embed_shard +\d+ of +16 elements done", status, re.MULTILINE)
        assert re.search(
            r"^  worker \S+-\d+: \d+ elements? done, last \w+ \d+ s ago", status, re.MULTILINE
        )
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate()
    assert process.returncode == 2
    assert error.count("\n") == 1, error
    assert "interrupted; the job was cancelled on the engine; " in error
    assert f"rerun the same command to resume from {work_dir}" in error
    assert last_job(on_flink)["state"] == "CANCELED"
    subprocess.run([sys.executable, "-c", RUN, *command], cwd=ROOT, check=True)
    resumed = out.read_bytes()
    assert mine_corpus([*run, "-o", str(out)]) == 0
    assert out.read_bytes() == resumed


def last_job(engine: Engine) -> Any:
    overview: Any = engine.get("/jobs/overview")
    return max(overview["jobs"], key=lambda job: job["start-time"])


INTERRUPTIBLE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "


def test_stages_and_their_counters_have_names_on_the_engine(on_flink: Engine) -> None:
    """Of the job that went on."""
    last = last_job(on_flink)
    assert last["state"] == "FINISHED"
    names = " ".join(vertex["name"] for vertex in on_flink.get(f"/jobs/{last['jid']}")["vertices"])
    for stage in ("embed_shard", "search_tile", "find_neighbours", "export_pairs"):
        assert stage in names
    accumulators: Any = on_flink.get(f"/jobs/{last['jid']}/accumulators")
    (beams,) = accumulators["user-task-accumulators"]
    metrics = json.loads(beams["value"])["metrics"]["attempted"]
    told = {tuple(one["labels"].get(key) for key in ("NAMESPACE", "NAME")) for one in metrics}
    counters = {("stages", "embed_shard"), ("milliseconds", "search_tile"), ("sentences", "read")}
    assert counters | {("memory", "peak bytes")} <= told


def test_a_packaged_job_runs_by_flinks_own_client(
    on_flink: Engine, daemons: Daemons, tmp_path: Path
) -> None:
    out, jar = tmp_path / "out.jsonl", tmp_path / "job.jar"
    run = [*corpora(tmp_path, 50), "-o", str(out), "--shards", "2", "-q"]
    options = [word for word in on_flink.options if not word.startswith("--flink_master=")]
    command = [*run, "--work-dir", str(tmp_path / "work"), *options]
    package = [sys.executable, "-c", RUN, *command, f"--output_executable_path={jar}"]
    done = subprocess.run([*package, "--fastr_copy"], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert done.stderr.endswith(
        "--fastr_copy: unknown option of Beam and of the job server; correct or omit it\n"
    )
    subprocess.run([*package, "--faster_copy"], cwd=ROOT, check=True)  # the job server's own
    assert jar.is_file()
    assert not out.exists()
    client = ["java", "-cp", f"{daemons.tools.flink}/lib/*"]
    client += ["org.apache.flink.client.cli.CliFrontend", "run", str(jar)]
    own = {"FLINK_CONF_DIR": str(on_flink.conf), "JDK_JAVA_OPTIONS": OPENED}
    subprocess.run(client, env=os.environ | own, check=True)
    packaged = out.read_bytes()
    assert mine_corpus(run) == 0
    assert out.read_bytes() == packaged


def test_an_error_of_the_input_is_one_line(on_flink: Engine, tmp_path: Path) -> None:
    good, _ = corpora(tmp_path, 50)
    blank = tmp_path / "blank.txt"
    blank.write_text("\n\n")
    own = ["-o", str(tmp_path / "o.tsv"), "--work-dir", str(tmp_path / "work"), "-q"]
    done = subprocess.run(
        [sys.executable, "-c", RUN, good, str(blank), *own, *on_flink.options],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"mine-corpus: error: {blank}: 2 sentences read, none usable (2 blank); check it and "
        "--input-format\n"
    )
