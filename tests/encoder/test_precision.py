"""Faster precisions are near float32, independent of the batch, and taken only where they are."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from encoder import network as networks
from encoder import torch_private
from encoder.laser import int8
from encoder.laser.int8 import Int8BiLSTM, lstm_step, quantize_rows
from encoder.laser.networks import BiLSTM
from encoder.network import embed_tokens, prepare
from encoder.tokenizer import Tokens
from miner import instructions
from miner.knn.core import products

HIDDEN = 40


def bilstm(*, layers: int = 2, bidirectional: bool = True) -> BiLSTM:
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(24, HIDDEN, num_layers=layers, bidirectional=bidirectional)
    tensors = {f"lstm.{name}": tensor for name, tensor in lstm.state_dict().items()}
    return BiLSTM({"embed_tokens.weight": torch.randn(50, 24), **tensors})


def sample(seed: int = 0) -> Tokens:
    draw = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(draw.integers(1, 30, size=40))))
    return Tokens(ids=draw.integers(0, 50, size=offsets[-1]).astype(np.int32), offsets=offsets)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("kind", ["int8", "bfloat16"])
def test_directions_are_nearly_those_of_float32(kind: str, bidirectional: bool) -> None:
    network, tokens = bilstm(bidirectional=bidirectional), sample()
    expected = embed_tokens(prepare(network, "float32", tokens), tokens)
    found = embed_tokens(prepare(network, kind, tokens), tokens)
    assert (found != expected).any()
    assert torch.cosine_similarity(found, expected).min() >= networks.MIN_COSINE


def test_int8_vectors_do_not_depend_on_the_batch() -> None:
    network, ids = Int8BiLSTM(bilstm()), torch.randint(0, 50, (9, 7))
    lengths = [7, 7, 6, 5, 5, 3, 1, 1, 1]
    alone = torch.cat(
        [network(row[:length].unsqueeze(0)) for row, length in zip(ids, lengths, strict=True)]
    )
    for row, length in zip(ids, lengths, strict=True):
        row[length:] = -1
    assert torch.equal(network(ids), alone)


def test_int8_vectors_do_not_depend_on_what_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    ids, found = torch.randint(0, 50, (9, 7)), []
    for chosen, seconds in (
        (instructions.CHOSEN, (1.0, 2.0)),  # of torch and of the kernels
        (instructions.CHOSEN, (2.0, 1.0)),
        (None, None),
    ):
        times = itertools.cycle(seconds or [])
        monkeypatch.setattr(int8, "CHOSEN", chosen)
        monkeypatch.setattr(products, "seconds_of", lambda work, times=times: next(times))
        found.append(Int8BiLSTM(bilstm())(ids))
    assert all(torch.equal(vectors, found[0]) for vectors in found)


OF_KEPT_CODE = """
import hashlib, torch
from encoder.laser.int8 import Int8BiLSTM
from tests.encoder.test_precision import bilstm
vectors = Int8BiLSTM(bilstm())(torch.randint(0, 50, (9, 7)))
print(hashlib.sha256(vectors.numpy().tobytes()).hexdigest())
"""


@pytest.mark.slow  # it compiles
def test_int8_vectors_of_kept_code_are_those_of_code_just_compiled(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    compiled, kept = (
        subprocess.check_output([sys.executable, "-c", OF_KEPT_CODE], env=environment)
        for _ in range(2)
    )
    assert compiled == kept


def test_auto_takes_the_first_that_is_near_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    network, tokens = bilstm(), sample()
    monkeypatch.setattr(networks, "_fast_precisions", lambda network, device: ["int8", "bfloat16"])
    assert prepare(network, "auto", tokens).precision == "int8"
    cosines = {}
    exact = embed_tokens(prepare(network, "float32", tokens), tokens)
    for kind in ("int8", "bfloat16"):
        found = embed_tokens(prepare(network, kind, tokens), tokens)
        cosines[kind] = torch.cosine_similarity(found, exact).min().item()
    assert cosines["int8"] < cosines["bfloat16"]
    monkeypatch.setattr(networks, "MIN_COSINE", (cosines["int8"] + cosines["bfloat16"]) / 2)
    assert prepare(network, "auto", tokens).precision == "bfloat16"
    monkeypatch.setattr(networks, "MIN_COSINE", 1.01)
    assert prepare(network, "auto", tokens).precision == "float32"


def test_what_is_fast_depends_on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    network, cpu = bilstm(), torch.device("cpu")
    monkeypatch.setattr(instructions, "CHOSEN", instructions.SETS["avx2"])
    monkeypatch.setattr(torch_private, "has_bfloat16_products", lambda: False)
    assert networks._fast_precisions(network, cpu) == ["int8"]
    assert networks._fast_precisions(torch.nn.Linear(1, 1), cpu) == []
    monkeypatch.setattr(torch_private, "has_bfloat16_products", lambda: True)
    assert networks._fast_precisions(torch.nn.Linear(1, 1), cpu) == ["bfloat16"]
    assert networks._fast_precisions(network, torch.device("cuda")) == ["bfloat16"]
    monkeypatch.setattr(instructions, "CHOSEN", None)
    assert networks._fast_precisions(network, cpu) == ["bfloat16"]


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_rows_are_rounded_to_their_own_scale(scale: float) -> None:
    rows = (np.random.default_rng(0).standard_normal((5, 33)) * scale).astype(np.float32)
    rows[2] = 0
    codes, scales = np.empty(rows.shape, np.int8), np.empty(5, np.float32)
    quantize_rows(rows, codes, scales)
    assert np.abs(codes).max(axis=1).tolist() == [63, 63, 0, 63, 63]
    error = np.abs(codes * scales[:, None].astype(np.float64) - rows)
    assert (error <= 0.501 * scales[:, None]).all()


def test_a_step_is_the_lstms(size: int = 33) -> None:
    """Against the formulas of torch.nn.LSTM, in float64."""
    draw = np.random.default_rng(0)
    uniform = lambda *shape: draw.uniform(-1, 1, shape).astype(np.float32)  # noqa: E731
    scales, last_scales = uniform(4), uniform(4)
    input_scales, hidden_scales, bias = uniform(4 * size), uniform(4 * size), uniform(4 * size)
    inputs, hidden = draw.integers(-9, 9, (2, 4, 4 * size)).astype(np.int32)
    state, last, out = uniform(4, size), np.zeros((4, size), np.int8), np.zeros((4, 99), np.float32)
    gates = (
        inputs * np.outer(scales, input_scales).astype(np.float64)
        + hidden * np.outer(last_scales, hidden_scales)
        + bias
    )
    enters, stays, candidates, leaves = np.split(gates, 4, axis=1)
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    cells = sigmoid(stays) * state + sigmoid(enters) * np.tanh(candidates)
    exposed = sigmoid(leaves) * np.tanh(cells)
    fixed, states = (input_scales, hidden_scales, bias), (state, last, last_scales)
    room = np.empty(4 * size, np.float32)
    lstm_step(scales, fixed, (inputs, hidden), states, room, out, size)
    np.testing.assert_allclose(state, cells, rtol=0, atol=2e-6)
    np.testing.assert_allclose(out[:, size : 2 * size], exposed, rtol=0, atol=2e-6)
    assert not out[:, :size].any()
    assert not out[:, 2 * size :].any()
    np.testing.assert_allclose(last * last_scales[:, None], exposed, rtol=0, atol=0.6 / 63)
