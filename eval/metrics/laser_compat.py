"""BUCC scores as LASER's bucc.py computes and prints them.

They differ from ``eval.metrics.bucc``: duplicate sentences are ignored, the search for a threshold
can separate equal scores, and a score equal to the threshold is extracted.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from eval.metrics.bucc import BuccScore, IdPair

ScoredTexts = tuple[float, str, str]  # score, source text, target text
Scores = Mapping[IdPair, float]


def unique_ids(texts: Sequence[str], ids: Sequence[str]) -> dict[str, str]:
    """Return stripped ids by stripped text, of texts that occur once."""
    stripped = [text.strip() for text in texts]
    counts = Counter(stripped)
    pairs = zip(stripped, ids, strict=True)
    return {text: identifier.strip() for text, identifier in pairs if counts[text] == 1}


def score_by_ids(
    candidates: Iterable[ScoredTexts], source_ids: Mapping[str, str], target_ids: Mapping[str, str]
) -> dict[IdPair, float]:
    """Return the best score of each pair of ids.

    Pairs are in the order of first occurrence in ``candidates`` (score, source, target). ``*_ids``
    are from ``unique_ids``. Candidates with other texts are skipped.
    """
    best: dict[IdPair, float] = {}
    for score, source, target in candidates:
        source_id, target_id = source_ids.get(source.strip()), target_ids.get(target.strip())
        if source_id is not None and target_id is not None:
            best[source_id, target_id] = max(score, best.get((source_id, target_id), score))
    return best


def best_threshold(scores: Scores, gold: Collection[IdPair]) -> float:
    """Return the threshold with the best F1 as bucc.py finds it.

    Pairs are cut after each, by descending score, ties in order. The threshold is halfway between
    the scores around the first best cut, the lowest score if all are kept, or 0 if none is correct.
    """
    ranked = sorted(scores.items(), key=lambda item: -item[1])
    # The original crashes after the last candidate. Its own score keeps it, because of >=.
    next_scores = [score for _, score in ranked[1:] + ranked[-1:]]
    threshold = best_f1 = 0.0
    correct = 0
    cuts = zip(ranked, next_scores, strict=True)
    for extracted, ((pair, score), next_score) in enumerate(cuts, start=1):
        correct += pair in gold
        if correct:
            precision, recall = correct / extracted, correct / len(gold)
            # Keep the order of operations: F1 values are compared to the last bit.
            f1 = 2 * precision * recall / (precision + recall)
            if f1 > best_f1:
                best_f1, threshold = f1, (score + next_score) / 2
    return threshold


def extract(scores: Scores, threshold: float) -> list[IdPair]:
    """Return the pairs with a score of at least ``threshold``, in their order."""
    return [pair for pair, score in scores.items() if score >= threshold]


def measure(scores: Scores, gold: Collection[IdPair], threshold: float) -> BuccScore:
    """Compare pairs of a score >= ``threshold`` with distinct ``gold`` pairs."""
    extracted = extract(scores, threshold)
    correct = len(set(gold).intersection(extracted))
    counts = {"extracted": len(extracted), "correct": correct, "found": correct, "gold": len(gold)}
    return BuccScore(threshold=threshold, **counts)


def format_score(score: BuccScore, label: str) -> str:
    """Format a score as bucc.py prints it, after ``label`` and the threshold."""
    return (
        f"- {label}={score.threshold:f}: precision={100 * score.precision:.2f}, "
        f"recall={100 * score.recall:.2f}, F1={100 * score.f1:.2f}"
    )
