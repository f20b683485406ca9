"""LASER's file formats in small: checkpoints made here, and those that LASER itself made."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
import sentencepiece
import torch

GOLDEN = Path(__file__).parents[2] / "golden" / "laser_checkpoint"
LINES = (GOLDEN / "inputs.bpe.txt").read_text(encoding="utf-8").split("\n")[:-1]
SENTENCES = [
    "Der Hund schläft im Garten.",
    "The dog sleeps in the garden.",
    "Es regnet heute in Berlin!",
    "It rains in Berlin today!",
]
QUOTES = 'So "a", or "b," and 3,000 or 3.000.'


def pieces_model(size: int = 60) -> bytes:
    """A SentencePiece model of the sentences above, lower case."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line.lower() for line in (*SENTENCES, QUOTES)] * 3),
        model_writer=model,
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


@pytest.fixture
def laser2(tmp_path: Path) -> Path:
    """A LASER2 of three random layers with its ``.spm``."""
    return make_bilstm(tmp_path / "laser2.pt", pieces_model())


def make_bilstm(path: Path, model: bytes, *, hidden: int = 8, layers: int = 3) -> Path:
    """Save a BiLSTM with random weights, whose dictionary is that of the model, and the model."""
    path.with_suffix(".spm").write_bytes(model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [processor.id_to_piece(row) for row in range(3, processor.get_piece_size())]
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *pieces]
    torch.manual_seed(0)
    embedding = torch.nn.Embedding(len(tokens), 12)
    lstm = torch.nn.LSTM(12, hidden, layers, bidirectional=True)
    content = {
        "params": {"num_embeddings": len(tokens), "padding_idx": 1, "embed_dim": 12}
        | {"hidden_size": hidden, "num_layers": layers, "bidirectional": True},
        "model": {"embed_tokens.weight": embedding.weight.detach()}
        | {f"lstm.{name}": tensor for name, tensor in lstm.state_dict().items()},
        "dictionary": {token: row for row, token in enumerate(tokens)},
    }
    torch.save(content, path)
    return path


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Path]:
    """Save a golden checkpoint anew after a change to what is in it."""

    def change(name: str, edit: Callable[[dict], object], **how: bool) -> Path:
        with torch.serialization.safe_globals([__import__("argparse").Namespace]):
            content = torch.load(GOLDEN / f"{name}.pt", weights_only=True)
        edit(content)
        path = tmp_path / f"{name}.pt"
        torch.save(content, path, **how)
        return path

    return change
