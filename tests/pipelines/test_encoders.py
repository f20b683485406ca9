"""Encoders that users bring, through the commands."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from encoder import load_encoder
from pipelines.cli.mine import embed_corpus, mine_corpus
from tests.encoder.laser.conftest import GOLDEN, SENTENCES, laser2
from tests.pipelines.worlds import read_jsonl

__all__ = ["laser2"]
INPUTS = str(GOLDEN / "inputs.bpe.txt")


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("laser", "bilstm_1layer"),
        ("laser", "bilstm_3layer"),
        ("laser3", "laser3_cls_prenorm"),
        ("laser3", "laser3_maxpool_leftpad_learnedpos"),
    ],
)
def test_embed_corpus_gives_lasers_vectors(spec: str, name: str, tmp_path: Path) -> None:
    expected = np.load(GOLDEN / f"{name}.expected.npy")
    encoder = ["--encoder", f"{spec}:{GOLDEN / name}.pt", "--pretokenized", "--no-normalize"]
    if spec == "laser3":
        encoder += ["--vocab", str(GOLDEN / "laser3.cvocab")]
    for out in (tmp_path / "x.npy", tmp_path / "x.raw"):
        assert embed_corpus([INPUTS, "-o", str(out), *encoder, "-q"]) == 0
    vectors = np.load(tmp_path / "x.npy")
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)
    raw = np.fromfile(tmp_path / "x.raw", dtype=np.float32)
    np.testing.assert_array_equal(raw, vectors.ravel())


def test_options_of_the_encoder_reach_it(laser2: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "a.txt"
    corpus.write_text("Er sagte: „Ja,“ und 3 000.\n", encoding="utf-8")
    found = {}
    for case in ("--lang de", "--lang en", "--precision int8", "--dtype float16"):
        out = tmp_path / "x.npy"
        options = ["--encoder", f"laser:{laser2}", *case.split()]
        assert embed_corpus([str(corpus), "-o", str(out), *options, "-q"]) == 0
        found[case] = np.load(out)[0]
    encoder = load_encoder(f"laser:{laser2}")
    text = corpus.read_text(encoding="utf-8").rstrip("\n")
    np.testing.assert_array_equal(found["--lang de"], encoder.for_language("de").encode([text])[0])
    assert (found["--lang de"] != found["--lang en"]).any()
    assert 0.99 < found["--lang en"] @ found["--precision int8"] < 1
    assert found["--dtype float16"].dtype == np.float16


def test_options_for_other_encoders_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in (["--pretokenized"], ["--vocab", INPUTS], ["--precision", "int8"]):
        assert embed_corpus([INPUTS, "-o", str(tmp_path / "x.npy"), *option]) == 2
        assert f"{option[0]} " in (line := capsys.readouterr().err) and "encoder 'mini'" in line
    assert not (tmp_path / "x.npy").exists()


def corpora(folder: Path) -> list[str]:
    paths = [folder / "a.txt", folder / "b.txt"]
    for path, sentences in zip(
        paths, (SENTENCES, [*SENTENCES[:2], "Something else."]), strict=True
    ):
        path.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
    return [str(path) for path in paths]


def test_mining_with_laser2(laser2: Path, tmp_path: Path) -> None:
    """A sentence is nearest to itself; each side is prepared in its own language."""
    out = tmp_path / "pairs.jsonl"
    arguments = [*corpora(tmp_path), "-o", str(out), "-k", "2", "--encoder", f"laser:{laser2}"]
    languages = ["--src-lang", "de", "--tgt-lang", "en", "--work-dir", str(tmp_path / "work")]
    assert mine_corpus([*arguments, *languages, "--all", "--keep-identical"]) == 0
    same = {(pair["source_text"], pair["target_text"]) for pair in read_jsonl(out)}
    assert {(sentence, sentence) for sentence in SENTENCES[:2]} <= same


@pytest.mark.slow
def test_mining_with_sentence_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    model = make_sentence_transformer(tmp_path / "tiny-e5-model")
    encoder = load_encoder(f"st:{model}")
    vectors = encoder.encode(SENTENCES)
    assert vectors.shape == (4, 16)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert encoder.encode([]).shape == (0, 16)
    np.testing.assert_array_equal(encoder.encode(SENTENCES[1]), encoder.encode(SENTENCES[1:2])[0])
    out = tmp_path / "pairs.jsonl"
    arguments = [*corpora(tmp_path), "-o", str(out), "-k", "2", "--encoder", f"st:{model}"]
    assert mine_corpus([*arguments, "--all", "--keep-identical"]) == 0
    same = {(pair["source_text"], pair["target_text"]) for pair in read_jsonl(out)}
    assert {(sentence, sentence) for sentence in SENTENCES[:2]} <= same
    with pytest.raises(ValueError, match="is not a folder"):
        load_encoder(f"st:{tmp_path / 'nosuch'}")


class _NotFoundError(Exception):
    response = SimpleNamespace(status_code=404)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ConnectionError("no route to the hub"), "the Hugging Face hub cannot be reached; check"),
        (_NotFoundError(), "is not a folder, nor a public model on .*; check its name"),
        (ValueError("a name with spaces"), "is not a folder, nor a public model on"),
    ],
)
def test_the_hub_is_asked_once(
    monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    pytest.importorskip("sentence_transformers")
    from huggingface_hub import HfApi

    asked = []

    def fail(hub: HfApi, name: str, **options: object) -> None:
        asked.append(name)
        raise error

    monkeypatch.setattr(HfApi, "model_info", fail)
    with pytest.raises(ValueError, match=f"^encoder 'st:no/such' .*{message}"):
        load_encoder("st:no/such")
    assert asked == ["no/such"]


def make_sentence_transformer(folder: Path) -> Path:
    """A BERT of one random layer, whose tokens are letters."""
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    base = folder.with_name("base")
    base.mkdir()
    letters = "abcdefghijklmnopqrstuvwxyz.!"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{c}" for c in letters)]
    (base / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    BertTokenizerFast(vocab_file=str(base / "vocab.txt")).save_pretrained(base)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokens),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    BertModel(config).save_pretrained(base)
    SentenceTransformer(str(base)).save(str(folder))  # with mean pooling
    return folder
