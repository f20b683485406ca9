"""The training of an encoder from files of parallel text."""

import logging
import os
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
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
from encoder.training.architectures import check_dim
from encoder.training.data import Rows, TokenPairs, hold_out, pair_weights, tokenize_pairs
from encoder.training.evaluation import PROGRESS, STATE, Keeper, Measures, choose, held_out_error
from encoder.training.loop import Training, check_shares, train
from encoder.training.options import Recipe
from encoder.training.reading import Texts, read_text
from encoder.training.state import State, load_state
from encoder.training.tasks import TASKS, make_task, read_beside
from encoder.training.tasks.task import Setting

logger = logging.getLogger(__name__)

VOCABULARY_SENTENCES = 1_300_000  # source sentences for training the vocabulary
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
    """Train an encoder and save it in the folder ``output``.

    It uses a GPU, if any, and seeds torch. Each evaluation, after ``recipe.evaluate_every`` steps
    or the last, saves the state, and the encoder if it is the best so far, over earlier files. If
    ``output`` has the state of the same training, training resumes. ``teacher`` is the encoder to
    learn from, if the objective needs one. ``start``, of the same architecture, gives vocabulary
    and first weights, by default random. ``measures``, whose errors are raised, are added to the
    held-out error (of language pairs). ``on_begin`` is called with the number of earlier steps, and
    ``on_step`` after each step. The result is the saved encoder's measures by name and part, 0 to
    1, or {} in other processes of a ``process_group``, which all call this, than the first.

    Raises:
        ValueError: ``output`` cannot be written, or has another or a damaged training, a file is
            missing, malformed or too small, arguments conflict, or training diverges.
        OSError: A file cannot be written.
    """
    _check_output(output)
    options, objective = recipe.options, recipe.options.objective
    check_shares(options)
    check_dim(options.architecture)
    texts, held_out = _read_texts(recipe)
    extra = read_beside(recipe.tasks)
    identity = _identity(recipe, [*texts, *extra], teacher, start, measures)
    task_type = TASKS[objective.name]
    evaluation_texts = task_type.evaluation_texts(held_out, options)
    measures = [*([held_out_error(evaluation_texts)] if evaluation_texts else []), *measures]
    best_by = choose(measures, recipe.best_by, objective.figure)
    path = output / PROGRESS / STATE
    state = parallel.run_in_first(lambda: _initial_state(recipe, texts, start, identity, path))
    tokenizer = Tokenizer(state.tokenizer_model)
    pairs, held_out_pairs = (_tokenize_texts(recipe, tokenizer, part) for part in (texts, held_out))
    extra_pairs = [tokenize_pairs(text, tokenizer, {}) for text in extra]
    pairs += _auxiliary_pairs(recipe, pairs, extra_pairs)
    torch.manual_seed(options.seed)
    features = Features(tokenizer.pieces(), options.architecture.ngram_rows)
    model = task_type.model(options, features, texts)
    if start is not None:
        model.start_from(start)
    setting = Setting(options, len(tokenizer), texts, held_out, teacher)
    task = make_task(setting, recipe.tasks, extra)
    pairs = [*task.batch_pairs(pairs)]
    training = Training(model, task, options)
    if state.step:
        tensors = {name: torch.from_numpy(one) for name, one in state.tensors.items()}
        try:
            training.restore(tensors, state.step)
        except ValueError as error:
            raise ValueError(
                f"{path}: {error}; pass another folder, or delete this file to restart"
            ) from error
        task.prepare(model, pairs)
        logger.info("resuming after step %d", state.step)
    sample = list(sample_sentences(recipe, texts, WHITENING_SENTENCES))
    finish = partial(model.export, tokenizer, sample=sample, whitening=objective.whitening)
    facts = _facts(recipe, texts, identity)
    keeper = Keeper(output, state, measures=measures, best_by=best_by, finish=finish, facts=facts)
    losses: list[float] = []

    def after_step(loss: float) -> None:
        on_step()
        losses.append(loss)
        if training.step % recipe.evaluate_every == 0 or training.step == options.steps:
            if parallel.rank() == 0:
                figures = {"loss": float(np.mean(losses)), **task.figures(model, held_out_pairs)}
                keeper.keep(training, figures)
            losses.clear()
            task.prepare(model, pairs)
            training.rate_factor = parallel.run_in_first(lambda: task.rate_factor(state.history))

    on_begin(state.step)
    training.rate_factor = parallel.run_in_first(lambda: task.rate_factor(state.history))
    train(training, pairs, after_step)
    return keeper.best() if parallel.rank() == 0 else {}


def _tokenize_texts(recipe: Recipe, tokenizer: Tokenizer, texts: Texts) -> list[TokenPairs]:
    one_sided = recipe.options.objective.one_sided
    pairs = (tokenize_pairs(text, tokenizer, recipe.corpus_weights, one_sided) for text in texts)
    return [replace(one, times=recipe.pair_weights.get(one.name, 1.0)) for one in pairs]


def _auxiliary_pairs(
    recipe: Recipe, pairs: Sequence[TokenPairs], auxiliary: Sequence[TokenPairs]
) -> list[TokenPairs]:
    exponent = recipe.options.language_exponent
    size = sum(float(one.weight.sum()) ** exponent * one.times for one in pairs)
    return [
        replace(one, times=recipe.tasks[one.name].weight * size / len(one.weight) ** exponent)
        for one in auxiliary
    ]


def _initial_state(
    recipe: Recipe, texts: Texts, start: Encoder | None, identity: dict[str, Any], path: Path
) -> State:
    if path.exists():
        return load_state(path, identity)
    if isinstance(start, BagEncoder | TrainedNetwork):
        return State(identity=identity, tokenizer_model=start.tokenizer_model)
    per_text, exponent = VOCABULARY_SENTENCES // len(texts), recipe.vocabulary_exponent
    model = train_tokenizer(
        sample_sentences(recipe, texts, per_text, exponent=exponent),
        vocabulary_size=recipe.vocabulary_size,
        model_type=recipe.vocabulary_model,
    )
    return State(identity=identity, tokenizer_model=model)


def _identity(
    recipe: Recipe, texts: Texts, teacher: Encoder | None, start: Encoder | None, measures: Measures
) -> dict[str, Any]:
    handled_below = ("files", "options", "tasks")
    task_weights = {name: task.weight for name, task in recipe.tasks.items()}
    return {
        **{name: value for name, value in vars(recipe).items() if name not in handled_below},
        **({"tasks": task_weights} if recipe.tasks else {}),
        **({} if start is None else {"start": start.name}),
        **recipe.options.flat(),
        "exclude": sorted(recipe.exclude),
        "text": {text.name: text.digest() for text in texts},
        "teacher": None if teacher is None else teacher.name,
        "measures": {measure.name: list(measure.parts) for measure in measures},
    }


def _facts(recipe: Recipe, texts: Texts, identity: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "pairs": {text.name: dict(Counter(text.corpus)) for text in texts},
        "excluded": sorted(recipe.exclude),
        "corpus_weights": dict(recipe.corpus_weights),
        "pair_weights": dict(recipe.pair_weights),
        "tasks": identity.get("tasks", {}),
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
    path = folder.absolute()
    ancestor = next(parent for parent in (path, *path.parents) if parent.exists())
    if not ancestor.is_dir():
        raise ValueError(f"-o {ancestor}: is a file; name a folder")
    if not os.access(ancestor, os.W_OK):
        raise ValueError(f"-o {ancestor}: is not writable; check its permissions")


def _read_texts(recipe: Recipe) -> tuple[Texts, Texts]:
    all_texts = [read_text(name, files, recipe.exclude) for name, files in recipe.files.items()]
    texts, held_out = [], []
    for text in TASKS[recipe.options.objective.name].text(all_texts):
        training_text, held = hold_out(text, recipe.held_out, seed=recipe.options.seed)
        if not pair_weights(training_text, recipe.corpus_weights).any():
            raise ValueError(
                f"--corpus-weight: all training pairs of {text.name} are of corpora of weight 0; "
                "raise one"
            )
        logger.info("%s: %d pairs", text.name, len(training_text))
        texts.append(training_text)
        held_out.append(held)
    # A name may be misspelled, or from another language pair.
    corpora = {name for text in all_texts for name in {*text.corpus, *text.excluded}}
    for name in sorted({*recipe.exclude, *recipe.corpus_weights} - corpora):
        option = "--exclude" if name in recipe.exclude else "--corpus-weight"
        logger.warning(
            "%s %s: no pair is of that corpus, so nothing changes; pass one of %s",
            *(option, name, ", ".join(sorted(corpora))),
        )
    return texts, held_out


def sample_sentences(
    recipe: Recipe, texts: Texts, mean_count: int, *, exponent: float = 0.0
) -> Iterator[str]:
    """Draw random source sentences of each text, and a third as many targets.

    The sources per text are proportional to its size, the sum of its pairs' weights (not all 0), to
    the power of ``exponent``, on average ``mean_count``, but at most the size (Conneau & Lample
    2019, section 3.1). Pairs are drawn by weight without repetition, again for targets, which are
    omitted if the objective embeds sources only. ``recipe`` has the seed and weights.
    """
    one_sided = recipe.options.objective.one_sided
    generator = np.random.default_rng(recipe.options.seed)
    weights = [pair_weights(text, recipe.corpus_weights).astype(np.float64) for text in texts]
    powers = np.array([weight.sum() for weight in weights]) ** exponent
    for text, weight, power in zip(texts, weights, powers, strict=True):
        count = int(min(mean_count * len(texts) * power / powers.sum(), weight.sum()))
        probabilities = weight / weight.sum()
        for side, share in ((text.source, count), (text.target, 0 if one_sided else count // 3)):
            rows: Rows = generator.choice(len(text), share, replace=False, p=probabilities)
            yield from (side[row] for row in rows)
