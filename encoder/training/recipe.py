"""From files of parallel text to an encoder on disk."""

import logging
import os
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from encoder import Encoder
from encoder.bag.encoder import BagEncoder
from encoder.bag.features import Features
from encoder.tokenizer import Tokenizer, train_tokenizer
from encoder.trained import TrainedNetwork
from encoder.training import parallel
from encoder.training.architectures.model import Trained
from encoder.training.data import Rows, TokenPairs, hold_out, pair_weights, tokenize_pairs
from encoder.training.evaluation import PROGRESS, STATE, Keeper, Measures, choose, held_out_error
from encoder.training.loop import Training, check_shares, train
from encoder.training.options import Recipe
from encoder.training.reading import Texts, read_text
from encoder.training.state import State, load_state
from encoder.training.tasks import TASKS, make_task, read_beside
from encoder.training.tasks.task import Setting

logger = logging.getLogger(__name__)

VOCABULARY_SENTENCES = 1_300_000  # source sentences that the vocabulary is made from
WHITENING_SENTENCES = 2_000  # source sentences of each language pair for the whitening


def train_encoder(
    recipe: Recipe,
    output: Path,
    *,
    teacher: Encoder | None = None,
    start: Encoder | None = None,
    measures: Measures = (),
    on_begin: Callable[[int], None] = lambda done: None,
    on_step: Callable[[], None] = lambda: None,
) -> Mapping[str, Mapping[str, float]]:
    """Train an encoder, save it in the folder ``output``, and return its figures by measure.

    At every evaluation the encoder is saved if it is the best so far, and the state of the
    training beside it, see ``evaluation.Keeper``. A training that was begun there goes on.

    Args:
        recipe: data, vocabulary and training options.
        output: the folder to write.
        teacher: what the objective learns from, if it does.
        start: an encoder of the same architecture, whose vocabulary and weights are begun with.
        measures: what is measured at each evaluation, beside the held-out error.
        on_begin: called with the number of steps done before, when all is ready for more.
        on_step: called after each step.

    Raises:
        ValueError: ``output`` cannot be written, a file is not parallel text or too small, what is
            to be trained cannot be, or another training was begun in ``output``.
    """
    _check_output(output)
    options, objective = recipe.options, recipe.options.objective
    check_shares(options)
    texts, held_out = _read(recipe)
    beside = read_beside(recipe.tasks)
    identity = _identity(recipe, [*texts, *beside], teacher, start, measures)
    kind = TASKS[objective.name]
    judged = kind.judged(held_out, options)
    measures = [*([held_out_error(judged)] if judged else []), *measures]
    best_by = choose(measures, recipe.best_by, objective.figure)
    path = output / PROGRESS / STATE
    state = parallel.from_first(lambda: _state(recipe, texts, start, identity, path))
    tokenizer = Tokenizer(state.tokenizer_model)
    pairs, others = (_tokenized(recipe, tokenizer, some) for some in (texts, held_out))
    pairs += _beside(recipe, pairs, [tokenize_pairs(text, tokenizer, {}) for text in beside])
    torch.manual_seed(options.seed)
    features = Features(tokenizer.pieces(), options.architecture.ngram_rows)
    model = kind.model(options, features, texts)
    if start is not None:
        model.begin_with(start)
    setting = Setting(options, len(tokenizer), texts, held_out, teacher)
    task = make_task(setting, recipe.tasks, beside)
    pairs = [*task.drawn(pairs)]
    training = Training(model, task, options)
    if state.step:
        tensors = {name: torch.from_numpy(one) for name, one in state.tensors.items()}
        training.restore(tensors, state.step)
        task.prepare(model, pairs)
        logger.info("resuming after step %d", state.step)
    sample = list(sample_sentences(recipe, texts, WHITENING_SENTENCES))

    def finish() -> Trained:
        encoder, save = model.finished(tokenizer, sample=sample, whitening=objective.whitening)

        def save_all(folder: Path, facts: Mapping[str, Any]) -> None:
            save(folder, facts=facts)
            task.keep(folder)

        return task.whole(encoder), save_all

    facts = _facts(recipe, texts, identity)
    keeper = Keeper(output, state, measures=measures, best_by=best_by, finish=finish, facts=facts)
    on_begin(state.step)
    _train(recipe, training, keeper, pairs, others, on_step)
    return keeper.best() if parallel.rank() == 0 else {}


def _train(
    recipe: Recipe,
    training: Training,
    keeper: Keeper,
    pairs: list[TokenPairs],
    others: list[TokenPairs],
    on_step: Callable[[], None],
) -> None:
    """Train with some pairs, and keep what is reached each time it is evaluated with others."""
    model, task, history = training.model, training.task, keeper.state.history
    losses: list[float] = []

    def stepped(loss: float) -> None:
        on_step()
        losses.append(loss)
        if training.step % recipe.evaluate_every == 0 or training.step == recipe.options.steps:
            if parallel.rank() == 0:
                figures = {"loss": float(np.mean(losses)), **task.figures(model, others)}
                keeper.keep(training, figures)
            losses.clear()
            task.prepare(model, pairs)
            training.slower = parallel.from_first(lambda: task.slower(history))

    training.slower = parallel.from_first(lambda: task.slower(history))
    train(training, pairs, stepped)


def _tokenized(recipe: Recipe, tokenizer: Tokenizer, texts: Texts) -> list[TokenPairs]:
    one_sided = recipe.options.objective.one_sided
    found = (tokenize_pairs(text, tokenizer, recipe.corpus_weights, one_sided) for text in texts)
    return [replace(one, times=recipe.pair_weights.get(one.name, 1.0)) for one in found]


def _beside(
    recipe: Recipe, pairs: Sequence[TokenPairs], others: Sequence[TokenPairs]
) -> list[TokenPairs]:
    """Return the pairs of tasks beside, drawn their weight times as often as parallel text."""
    exponent = recipe.options.language_exponent
    size = sum(float(one.weight.sum()) ** exponent * one.times for one in pairs)
    return [
        replace(one, times=recipe.tasks[one.name].weight * size / len(one.weight) ** exponent)
        for one in others
    ]


def _state(
    recipe: Recipe, texts: Texts, start: Encoder | None, identity: dict[str, Any], path: Path
) -> State:
    """Return the state to go on from; if there is none, a new one with its vocabulary."""
    if path.exists():
        return load_state(path, identity)
    if isinstance(start, BagEncoder | TrainedNetwork):
        return State(identity=identity, tokenizer_model=start.tokenizer_model)
    most, exponent = VOCABULARY_SENTENCES // len(texts), recipe.vocabulary_exponent
    model = train_tokenizer(
        sample_sentences(recipe, texts, most, exponent=exponent),
        vocabulary_size=recipe.vocabulary_size,
        model_type=recipe.vocabulary_model,
    )
    return State(identity=identity, tokenizer_model=model)


def _identity(
    recipe: Recipe, texts: Texts, teacher: Encoder | None, start: Encoder | None, measures: Measures
) -> dict[str, Any]:
    """Return what decides the weights, and which of them are saved, as JSON values."""
    apart = ("files", "options", "tasks")
    return {
        **{name: value for name, value in vars(recipe).items() if name not in apart},
        **({"tasks": _weights(recipe)} if recipe.tasks else {}),
        **({} if start is None else {"start": start.name}),
        **recipe.options.flat(),
        "exclude": sorted(recipe.exclude),
        "text": {text.name: text.digest() for text in texts},
        "teacher": None if teacher is None else teacher.name,
        "measures": {measure.name: list(measure.parts) for measure in measures},
    }


def _weights(recipe: Recipe) -> dict[str, float]:
    return {name: task.weight for name, task in recipe.tasks.items()}


def _facts(recipe: Recipe, texts: Texts, identity: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "pairs": {text.name: dict(Counter(text.corpus)) for text in texts},
        "excluded": sorted(recipe.exclude),
        "corpus_weights": dict(recipe.corpus_weights),
        "pair_weights": dict(recipe.pair_weights),
        "tasks": _weights(recipe),
        "whitening": recipe.options.objective.whitening,
        "teacher": identity["teacher"],
        "names": recipe.options.objective.names,
        "start": identity.get("start"),
        "options": recipe.options.flat(),
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "torch": torch.__version__,
    }


def _check_output(folder: Path) -> None:
    """Refuse before the hours of training what could not be written after them."""
    whole = folder.absolute()
    above = next(place for place in (whole, *whole.parents) if place.exists())
    if not above.is_dir():
        raise ValueError(f"{above}: is a file; the encoder needs a folder")
    if not os.access(above, os.W_OK):
        raise ValueError(f"{folder}: is not writable; check its permissions")


def _read(recipe: Recipe) -> tuple[Texts, Texts]:
    """Return the text to train on, and what is held out of it."""
    read = [read_text(name, files, recipe.exclude) for name, files in recipe.files.items()]
    texts, held_out = [], []
    for text in TASKS[recipe.options.objective.name].text(read):
        kept, out = hold_out(text, recipe.held_out, seed=recipe.options.seed)
        if not pair_weights(kept, recipe.corpus_weights).any():
            raise ValueError(f"{text.name}: every pair belongs to a corpus of weight 0; exclude it")
        logger.info("%s: %d pairs", text.name, len(kept))
        texts.append(kept)
        held_out.append(out)
    # A name may be misspelt, or of another language pair.
    known = {name for text in read for name in {*text.corpus, *text.excluded}}
    for name in sorted({*recipe.exclude, *recipe.corpus_weights} - known):
        logger.warning(
            "no pair belongs to corpus %s; corpora are %s", name, ", ".join(sorted(known))
        )
    return texts, held_out


def sample_sentences(
    recipe: Recipe, texts: Texts, most: int, *, exponent: float = 0.0
) -> Iterator[str]:
    """Draw ``most`` source sentences of each language pair, if it has them, and a third of targets.

    These are drawn in proportion to the pairs' sizes to the power of ``exponent``, ``most`` being
    the mean (Conneau & Lample 2019, section 3.1). Targets are the same language in nearly every
    pair, hence fewer, and none where they are not embedded; what is down-weighted in training is so
    here.
    """
    one_sided = recipe.options.objective.one_sided
    generator = np.random.default_rng(recipe.options.seed)
    weights = [pair_weights(text, recipe.corpus_weights).astype(np.float64) for text in texts]
    parts = np.array([weight.sum() for weight in weights]) ** exponent
    for text, weight, part in zip(texts, weights, parts, strict=True):
        count = int(min(most * len(texts) * part / parts.sum(), weight.sum()))
        shares = weight / weight.sum()
        for side, share in ((text.source, count), (text.target, 0 if one_sided else count // 3)):
            rows: Rows = generator.choice(len(text), share, replace=False, p=shares)
            yield from (side[row] for row in rows)
