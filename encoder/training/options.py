"""What decides the weights, given the token pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass

ARCHITECTURES = ("bag", "bilstm", "transformer")
OBJECTIVES = ("ranking", "translation", "distillation")
PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What decides the weights, given the token pairs.

    ``batch_size`` is in sentence pairs, with the objective ``translation`` in tokens; a step takes
    ``accumulate`` batches. Of batches of more than ``at_once`` sentences, a network keeps no
    activations, which bounds memory and takes longer. ``ngram_rows`` concerns the bag
    (``encoder.features``), ``layers``, ``dropout`` (of activations) and ``decoder_dim`` concern
    networks, ``targets`` and ``decoder_dim`` the objective ``translation``, and ``hard_negatives``
    (for each pair), ``scale`` and ``margin`` the objective ``ranking``.

    Raises:
        ValueError: a value is out of its range.
    """

    architecture: str = "bag"
    objective: str = "ranking"
    dim: int = 384
    ngram_rows: int = 0
    layers: int = 1
    steps: int = 40_000
    batch_size: int = 1024
    accumulate: int = 1
    at_once: int = 2048
    learning_rate: float = 2e-3
    warmup_steps: int = 200
    scale: float = 20.0
    margin: float = 0.2
    hard_negatives: int = 0
    targets: tuple[str, ...] = ("en", "es")
    decoder_dim: int = 2048
    temperature: float = 0.5
    token_dropout: float = 0.1
    dropout: float = 0.1
    precision: str = "float32"
    seed: int = 1

    def __post_init__(self) -> None:
        within = {
            "dim": (1, math.inf),
            "ngram_rows": (0, math.inf),
            "layers": (1, 5),
            "steps": (1, math.inf),
            "batch_size": (2, math.inf),  # a pair is ranked against the others
            "accumulate": (1, math.inf),
            "at_once": (1, math.inf),
            "learning_rate": (0, 1),
            "warmup_steps": (1, math.inf),
            "scale": (0, 40),  # above it the float32 softmax of the objective underflows
            "margin": (0, 1),
            "hard_negatives": (0, 100),
            "decoder_dim": (1, math.inf),
            "temperature": (0, 1),
            "token_dropout": (0, 0.99),
            "dropout": (0, 0.99),
            "seed": (0, 2**63 - 1),
        }
        for name, (lowest, highest) in within.items():
            value = getattr(self, name)
            if not lowest <= value <= highest:
                limits = f"{lowest} or more" if highest == math.inf else f"{lowest} to {highest}"
                raise ValueError(f"{name} {value}: expected {limits}")
        for name, choices in (
            ("architecture", ARCHITECTURES),
            ("objective", OBJECTIVES),
            ("precision", PRECISIONS),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name} {getattr(self, name)}: choose one of {', '.join(choices)}"
                )


def learning_rate_at(step: int, options: TrainingOptions) -> float:
    """Linear warm-up, then linear decay to zero at the last step.

    It stays constant for the objective ``translation`` (Artetxe & Schwenk 2019, section 3.2).
    """
    warm = min(1.0, (step + 1) / options.warmup_steps)
    left = 1.0 if options.objective == "translation" else 1 - step / options.steps
    return options.learning_rate * warm * left
