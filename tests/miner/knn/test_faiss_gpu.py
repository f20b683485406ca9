"""GPUs that are not here: FAISS's own functions are replaced."""

import logging
import subprocess

import faiss
import numpy as np
import pytest

from miner.knn import faiss_index
from miner.knn.faiss_index import on_gpus

QUERY = np.ones((1, 8), dtype=np.float32)


@pytest.fixture(autouse=True)
def forget():
    yield
    faiss_index._gpus_work.cache_clear()
    faiss_index._warn_once.cache_clear()


@pytest.fixture
def index():
    flat = faiss.IndexFlatIP(8)
    flat.add(QUERY)
    return flat


@pytest.fixture
def one_gpu(monkeypatch):
    """A GPU whose trial goes well; returns what the trials' processes were given."""
    trials = []

    def run(command, **_):
        trials.append(command)
        return subprocess.CompletedProcess(command, 0, b"", b"")

    class Options:
        useFloat16 = False  # noqa: N815

    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1, raising=False)
    monkeypatch.setattr(faiss, "GpuMultipleClonerOptions", Options, raising=False)
    monkeypatch.setattr(subprocess, "run", run)
    return trials


def put_on_gpu(monkeypatch, moved):
    def clone(index, co):
        assert co.useFloat16
        if isinstance(moved, Exception):
            raise moved
        return moved

    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", clone, raising=False)


def reasons(caplog):
    return [record.getMessage() for record in caplog.records]


def test_without_a_gpu_nothing_is_tried_or_told(index, monkeypatch, caplog):
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0, raising=False)
    assert on_gpus(index, QUERY, count=1) is index
    monkeypatch.delattr(faiss, "get_num_gpus")
    faiss_index._gpus_work.cache_clear()
    assert on_gpus(index, QUERY, count=1) is index
    assert reasons(caplog) == []


def test_an_index_is_moved_to_a_gpu_that_works(index, one_gpu, monkeypatch, caplog):
    moved = faiss.clone_index(index)
    put_on_gpu(monkeypatch, moved)
    assert on_gpus(index, QUERY, count=1) is moved
    assert on_gpus(index, QUERY, count=1) is moved
    assert len(one_gpu) == 1, "one trial a process"
    assert reasons(caplog) == []


def test_an_index_that_no_gpu_can_hold_stays_and_says_so_once(index, one_gpu, monkeypatch, caplog):
    put_on_gpu(
        monkeypatch, RuntimeError("Error in f() at gpu/a.cu:7: Error: 'no' failed: no such kind")
    )
    with caplog.at_level(logging.WARNING):
        assert on_gpus(index, QUERY, count=1) is index
        assert on_gpus(index, QUERY, count=1) is index
    assert reasons(caplog) == [
        "--index: FAISS cannot use the GPU (no such kind) and takes longer on the CPU; use exact "
        "or cells"
    ]


def test_a_search_that_no_gpu_can_do(index, one_gpu, monkeypatch, caplog):
    """More neighbours, or more cells, than a GPU's kernels are made for."""

    class Moved:
        def search(self, query, count):
            raise RuntimeError(f"Error in f() at a.cu:7: nprobe > 2048, k is {count}")

    put_on_gpu(monkeypatch, Moved())
    assert on_gpus(index, QUERY, count=7) is index
    assert reasons(caplog) == [
        "--index: FAISS cannot use the GPU (nprobe > 2048, k is 7) and takes longer on the CPU; "
        "use exact or cells"
    ]


@pytest.mark.parametrize("end", ["abort", "hang"])
def test_a_gpu_on_which_a_trial_fails(index, one_gpu, monkeypatch, caplog, end):
    def run(command, timeout, **_):
        if end == "hang":
            raise subprocess.TimeoutExpired(command, timeout)
        told = b"Faiss assertion failed\nCUDA error 209 no kernel image is available\n"
        return subprocess.CompletedProcess(command, -6, b"", told)

    monkeypatch.setattr(subprocess, "run", run)
    put_on_gpu(monkeypatch, AssertionError("must not be reached"))
    assert on_gpus(index, QUERY, count=1) is index
    assert on_gpus(index, QUERY, count=1) is index
    [reason] = reasons(caplog)
    assert ("209 no kernel image" if end == "abort" else "after 120 s") in reason


def test_the_trial_is_a_program(monkeypatch):
    """On this machine's CPU, with the one function of FAISS's that it lacks."""
    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", lambda index: index, raising=False)
    exec(compile(faiss_index.TRIAL, "trial", "exec"), {})
