"""One clear line for each file that cannot be used, and nothing executed from it."""

from __future__ import annotations

import argparse
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from encoder import load_encoder
from encoder.laser.loading import read_torch_file, to_plain
from tests.encoder.laser.conftest import GOLDEN, LINES


class Bomb:
    """What makes a folder when it is unpickled by a reader that runs what it reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __reduce__(self) -> tuple:
        return os.mkdir, (self.folder,)


def refusal(spec: str, **options: object) -> str:
    with pytest.raises(ValueError, match=r"\w") as caught:
        load_encoder(spec, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("place", ["params", "model", "dictionary", "extra"])
def test_a_bomb_is_named_and_does_not_go_off(
    changed: Callable[..., Path], tmp_path: Path, place: str, zipped: bool
) -> None:
    crater = tmp_path / "crater"
    path = changed(
        "bilstm_1layer",
        lambda content: content.update({place: Bomb(crater)}),
        _use_new_zipfile_serialization=zipped,
    )
    with pytest.raises(ValueError, match=r"names posix\.mkdir, which is code"):
        read_torch_file(path)
    assert "posix.mkdir" in refusal(f"laser:{path}", pretokenized=True)
    assert not crater.exists()


def test_a_bomb_in_a_bare_pickle(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(pickle.dumps({"params": Bomb(tmp_path / "crater")}))
    refusal(f"laser:{path}", pretokenized=True)
    assert not (tmp_path / "crater").exists()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file(tmp_path: Path, share: float) -> None:
    whole = (GOLDEN / "bilstm_3layer.pt").read_bytes()
    path = tmp_path / "x.pt"
    path.write_bytes(whole[: int(len(whole) * share)])
    assert "not a checkpoint file, or is damaged" in refusal(f"laser:{path}", pretokenized=True)


BILSTM_EDITS: dict[str, tuple[Callable[[dict], object], str]] = {
    "no model": (lambda c: c.pop("model"), "lacks the part 'model'"),
    "no dictionary": (lambda c: c.pop("dictionary"), "lacks the part 'dictionary'"),
    "no params": (lambda c: c.pop("params"), "lacks the part 'params'"),
    "a list": (lambda c: c.update(model=[]), "no dict as the part 'model'"),
    "no tensor": (lambda c: c["model"].pop("lstm.bias_hh_l1"), "lacks the tensor lstm.bias_hh_l1"),
    "no embeddings": (lambda c: c["model"].pop("embed_tokens.weight"), "lacks the tensor embed_"),
    "not a tensor": (lambda c: c["model"].update({"embed_tokens.weight": 3}), "not a tensor"),
    "one more": (lambda c: c["model"].update({"x": torch.ones(2)}), "has an unknown tensor x"),
    "shape": (
        lambda c: c["model"].update({"lstm.weight_ih_l1": torch.ones(32, 3)}),
        r"has lstm.weight_ih_l1 of shape (32, 3); the other tensors need (32, 16)",
    ),
    "sizes": (lambda c: c["params"].update(num_layers=10**9), "has num_layers 1000000000"),
    "ids": (lambda c: c["dictionary"].update(w00=60), "has 'w00' at 60"),
}


@pytest.mark.parametrize("case", BILSTM_EDITS)
def test_a_bilstm_that_does_not_fit_together(changed: Callable[..., Path], case: str) -> None:
    edit, expected = BILSTM_EDITS[case]
    path = changed("bilstm_3layer", edit)
    message = refusal(f"laser:{path}", pretokenized=True)
    assert message.startswith(f"{path}: ")
    assert expected in message


def config(content: dict) -> dict:
    return vars(content["cfg"]["model"])


TRANSFORMER_EDITS: dict[str, tuple[Callable[[dict], object], str]] = {
    "no cfg": (lambda c: c.pop("cfg"), "lacks the part 'cfg'"),
    "no cfg.model": (lambda c: c["cfg"].pop("model"), "lacks the part 'model'"),
    "no heads": (lambda c: config(c).pop("encoder_attention_heads"), "lacks the setting encoder_a"),
    "heads": (lambda c: config(c).update(encoder_attention_heads=5), "heads 5 for 16 dimensions"),
    "pooling": (lambda c: config(c).update(sentemb_criterion="sum"), "sentemb_criterion 'sum'"),
    "no <s>": (lambda c: config(c).update(prepend_bos=False), "has no prepend_bos"),
    "activation": (lambda c: config(c).update(activation_fn="swish"), "activation_fn 'swish'"),
    "no tensor": (lambda c: c["model"].pop("layers.1.fc2.bias"), "lacks the tensor layers.1.fc2"),
    "not a tensor": (lambda c: c["model"].update({"layers.1.fc2.bias": 3}), "not a tensor"),
    "no layers": (
        lambda c: c.update(model={"embed_tokens.weight": torch.ones(61, 16)}),
        "lacks the tensor layers.0.fc1.weight",
    ),
}


@pytest.mark.parametrize("case", TRANSFORMER_EDITS)
def test_a_transformer_that_does_not_fit_together(changed: Callable[..., Path], case: str) -> None:
    edit, expected = TRANSFORMER_EDITS[case]
    path = changed("laser3_cls_prenorm", edit)
    options = {"pretokenized": True, "vocabulary": GOLDEN / "laser3.cvocab"}
    assert expected in refusal(f"laser3:{path}", **options)


def test_a_transformer_lacks_the_setting_of_its_tokens(changed: Callable[..., Path]) -> None:
    name = "laser3_maxpool_leftpad_learnedpos"
    path = changed(name, lambda content: config(content).pop("prepend_bos"))
    assert "lacks the setting prepend_bos; download it again" in refusal(
        f"laser3:{path}", pretokenized=True, vocabulary=GOLDEN / "laser3.cvocab"
    )


def test_laser3_without_its_vocabulary(changed: Callable[..., Path], tmp_path: Path) -> None:
    path = changed("laser3_cls_prenorm", lambda content: None)
    message = refusal(f"laser3:{path}", pretokenized=True)
    assert message == (
        f"{path}: needs laser3_cls_prenorm.cvocab in the same folder; copy it there, or pass it "
        "with --vocab"
    )
    with_vocabulary = refusal(f"laser3:{path}", vocabulary=GOLDEN / "laser3.cvocab")
    assert with_vocabulary.endswith(
        "needs laser3_cls_prenorm.spm in the same folder; copy it there"
    )
    assert "x.cvocab: file not found; pass" in refusal(
        f"laser3:{path}", vocabulary=tmp_path / "x.cvocab"
    )


def test_another_vocabulary(changed: Callable[..., Path], tmp_path: Path) -> None:
    path = changed("laser3_cls_prenorm", lambda content: None)
    lines = (GOLDEN / "laser3.cvocab").read_text(encoding="utf-8").splitlines(keepends=True)
    for content, expected in (
        ("".join(lines[:-1]), "has 60 tokens including special tokens, and"),
        ("".join(lines) + lines[0], "line 57: duplicate or special token 'w00'"),
        ("word without a count\n", "line 1: expected a token and a count, not 'word"),
    ):
        path.with_suffix(".cvocab").write_text(content, encoding="utf-8")
        assert expected in refusal(f"laser3:{path}", pretokenized=True)


def test_text_needs_the_subwords(changed: Callable[..., Path]) -> None:
    path = changed("bilstm_1layer", lambda content: None)
    assert "needs bilstm_1layer.spm or bilstm_1layer.fcodes in the same folder" in refusal(
        f"laser:{path}"
    )
    for content in (b"no model", b""):
        path.with_suffix(".spm").write_bytes(content)
        assert "is not a SentencePiece model" in refusal(f"laser:{path}")


def test_the_other_kind_of_checkpoint_is_told() -> None:
    assert "use laser3:" in refusal(f"laser:{GOLDEN / 'laser3_cls_prenorm.pt'}")
    assert "use laser:" in refusal(f"laser3:{GOLDEN / 'bilstm_1layer.pt'}")
    assert "file not found; pass the .pt" in refusal("laser:nosuch.pt")
    assert "'nosuch:x' is unknown; use best" in refusal("nosuch:x")
    assert "--pretokenized conflicts with encoder 'mini'; omit it" in refusal(
        "mini", pretokenized=True
    )
    assert "--precision int8: encoder 'mini' runs in float32 only; omit" in refusal(
        "mini", precision="int8"
    )


def test_checkpoints_in_half_precision_and_in_the_old_format(changed: Callable[..., Path]) -> None:
    def halve(content: dict) -> None:
        content["model"] = {name: tensor.half() for name, tensor in content["model"].items()}

    path = changed("bilstm_3layer", halve, _use_new_zipfile_serialization=False)
    found = load_encoder(f"laser:{path}", pretokenized=True).encode(LINES)
    exact = load_encoder(f"laser:{GOLDEN / 'bilstm_3layer.pt'}", pretokenized=True).encode(LINES)
    assert (found * exact).sum(axis=1).min() > 0.9999


def test_a_translation_models_encoder_is_taken_alone(changed: Callable[..., Path]) -> None:
    def as_translator(content: dict) -> None:
        content["model"] = {f"encoder.{name}": part for name, part in content["model"].items()}
        content["model"] |= {"decoder.version": torch.ones(1), "decoder.x": torch.ones(3)}

    path = changed("laser3_cls_prenorm", as_translator)
    options = {"pretokenized": True, "vocabulary": GOLDEN / "laser3.cvocab"}
    found = load_encoder(f"laser3:{path}", **options).encode(LINES)
    exact = load_encoder(f"laser3:{GOLDEN / 'laser3_cls_prenorm.pt'}", **options).encode(LINES)
    assert (found == exact).all()


def test_configurations_of_omegaconf_are_plain_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = {}
    monkeypatch.setitem(sys.modules, "omegaconf", SimpleNamespace())
    for path in ("dictconfig.DictConfig", "listconfig.ListConfig", "nodes.AnyNode"):
        module, _, name = f"omegaconf.{path}".rpartition(".")
        made[name] = type(name, (SimpleNamespace,), {"__module__": module, "__qualname__": name})
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{name: made[name]}))

    def wrap(value: object) -> object:
        if isinstance(value, dict):
            content = {key: wrap(item) for key, item in value.items()}
            return made["DictConfig"](_content=content, _parent=None)
        if isinstance(value, list):
            return made["ListConfig"](_content=[wrap(item) for item in value])
        return made["AnyNode"](_val=value)

    settings = {"layers": 2, "inner": {"prepend_bos": True, "names": ["x", None]}}
    torch.save({"cfg": wrap(settings), "model": {}}, tmp_path / "x.pt")
    monkeypatch.undo()
    assert read_torch_file(tmp_path / "x.pt") == {"cfg": settings, "model": {}}
    assert to_plain(argparse.Namespace(**settings)) == settings
