"""Networks of train-encoder's on disk."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from encoder import load_encoder
from encoder.checkpoint import CONFIG, WEIGHTS
from encoder.sentence_networks import KINDS
from encoder.tokenizer import Tokenizer
from encoder.trained import ALL, EndingTokenizer, save_networks
from encoder.training.architectures import make_model
from encoder.training.architectures.model import Model
from encoder.training.options import training_options
from tests.encoder.bag.test_features import one_word_each
from tests.encoder.test_tokenizer import lists_of

ARCHITECTURES = ("bilstm", "transformer", *KINDS)


def save(folder: Path, tokenizer: Tokenizer, architecture: str, *, pieces: int = 0) -> Model:
    torch.manual_seed(0)
    options = training_options(architecture=architecture, dim=16)
    model = make_model(options, one_word_each(pieces or len(tokenizer))).eval()
    networks = {ALL: model.network}
    save_networks(folder, architecture, networks, tokenizer_model=tokenizer.model, facts={})
    return model


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_is_loaded_encodes_as_what_was_trained(
    tmp_path: Path, tokenizer: Tokenizer, sentences: list[str], architecture: str
) -> None:
    model = save(tmp_path / "enc", tokenizer, architecture)
    short = [sentence for sentence in sentences if len(sentence) < 100]
    encoder = load_encoder(str(tmp_path / "enc"))
    with torch.inference_mode():
        expected = model(tokenizer.encode(short)).numpy()
    np.testing.assert_allclose(encoder.encode(short, normalize=False), expected, atol=1e-5)
    assert encoder.dim == 16 and encoder.name.startswith("enc@")
    assert encoder.for_language("de") is encoder


@pytest.mark.parametrize("architecture", KINDS)
def test_weights_that_are_no_network(architecture: str) -> None:
    kind = KINDS[architecture]
    whole = kind.new(5, 16)
    for name in whole:
        lacking = {other: tensor for other, tensor in whole.items() if other != name}
        with pytest.raises(ValueError, match=r"^(lacks the tensor|has )"):
            kind.build(lacking, dropout=0)
    with pytest.raises(ValueError, match="has an unknown tensor other"):
        kind.build({**whole, "other": whole["embed_tokens.weight"]}, dropout=0)


def test_a_precision_is_part_of_the_name(tmp_path: Path, tokenizer: Tokenizer) -> None:
    save(tmp_path / "enc", tokenizer, "bilstm")
    names = {load_encoder(str(tmp_path / "enc"), precision=p).name for p in ("float32", "bfloat16")}
    assert {name.rpartition("-")[2] for name in names} == {"float32", "bfloat16"}


@given(st.lists(st.text(max_size=9), max_size=6))
def test_every_sentence_is_ended(tokenizer: Tokenizer, texts: list[str]) -> None:
    plain = lists_of(tokenizer.encode(texts))
    ended = EndingTokenizer(tokenizer).encode(texts)
    assert lists_of(ended) == [[*one, len(tokenizer)] for one in plain]
    assert (ended.ids.dtype, ended.offsets.dtype) == (np.int32, np.int64)


def test_what_cannot_be_loaded(tmp_path: Path, tokenizer: Tokenizer) -> None:
    folder = tmp_path / "enc"

    def refusal() -> str:
        with pytest.raises(ValueError, match=r"^encoder .*enc: ") as caught:
            load_encoder(str(folder))
        return str(caught.value).partition("enc: ")[2]

    save(folder, tokenizer, "bilstm", pieces=7)
    told = f"{WEIGHTS} has 8 vectors, but tokenizer.model needs {len(tokenizer) + 1}, so "
    assert refusal().startswith(told)
    save(folder, tokenizer, "bilstm")
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**config, "architecture": "cnn"}))
    remedy = "copy the folder again, or update Adit"
    assert refusal() == f"{WEIGHTS} has the unknown architecture 'cnn'; {remedy}"
    (folder / CONFIG).write_text(json.dumps({**config, "architecture": "transformer"}))
    assert refusal() == f"{WEIGHTS} lacks the tensor layers.0.fc1.weight; {remedy}"
    (folder / WEIGHTS).write_bytes(b"")
    assert "is damaged" in refusal()
    save(folder, tokenizer, "transformer")
    with pytest.raises(ValueError, match="enc: --precision int8 requires LASER1"):
        load_encoder(str(folder), precision="int8")
