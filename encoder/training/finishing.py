"""From a model in training to an encoder that is used and saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from encoder.bag import BagEncoder
from encoder.checkpoint import save_encoder
from encoder.network import NetworkEncoder
from encoder.precision import Ready
from encoder.trained import EndingTokenizer, save_network
from encoder.training.models import Bag, Model, Network
from encoder.training.whitening import partly_whitened

if TYPE_CHECKING:
    from encoder import Encoder
    from encoder.tokenizer import Tokenizer
    from encoder.training.options import TrainingOptions

Save = Callable[[Path, Mapping[str, Any]], None]  # with the folder and what to tell of training


def finished(
    model: Model,
    tokenizer: Tokenizer,
    options: TrainingOptions,
    *,
    sample: Sequence[str],
    power: float,
) -> tuple[Encoder, Save]:
    """The encoder as it stands and what saves it; a bag is partly whitened by ``sample``."""
    model.eval()
    if isinstance(model, Bag):
        rows = options.ngram_rows
        bag = partial(BagEncoder, name="training", tokenizer=tokenizer, ngram_rows=rows)
        table = model.table.detach().cpu().numpy()
        if power:
            table = partly_whitened(table, bag(table=table).encode(sample), power=power)

        def save_bag(folder: Path, facts: Mapping[str, Any]) -> None:
            save_encoder(
                folder,
                table=table,
                ngram_rows=rows,
                tokenizer_model=tokenizer.model,
                facts=facts,
            )

        return bag(table=table), save_bag

    assert isinstance(model, Network)
    network = model.network

    def save(folder: Path, facts: Mapping[str, Any]) -> None:
        pieces = tokenizer.model
        save_network(folder, options.architecture, network, tokenizer_model=pieces, facts=facts)

    device = network.embed_tokens.weight.device
    ready = Ready(network, precision="float32", device=device)
    ending = EndingTokenizer(tokenizer)
    return NetworkEncoder(name="training", tokenizer=ending, network=ready), save
