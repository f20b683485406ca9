"""BUCC scores as LASER's bucc.py prints them, for comparison with published figures.

Where it differs from ``eval.metrics.bucc``: a sentence that occurs more than once on its side takes
part in nothing; equal scores can be parted by the search for a threshold, though not by the
extraction that follows; the comparison is ``score >= threshold``.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from eval.metrics.bucc import BuccScore, IdPair

# Score, source text, target text.
ScoredTexts = tuple[float, str, str]
Scores = Mapping[IdPair, float]


def unique_ids(texts: Sequence[str], ids: Sequence[str]) -> dict[str, str]:
    """Map stripped texts to their ids, without the texts that occur more than once."""
    stripped = [text.strip() for text in texts]
    counts = Counter(stripped)
    pairs = zip(stripped, ids, strict=True)
    return {text: identifier.strip() for text, identifier in pairs if counts[text] == 1}


def score_by_ids(
    candidates: Iterable[ScoredTexts], source_ids: Mapping[str, str], target_ids: Mapping[str, str]
) -> dict[IdPair, float]:
    """Return the best score of each id pair, in the order of first mention.

    Candidates with a text that is not in the ``unique_ids`` of its side are left out.
    """
    best: dict[IdPair, float] = {}
    for score, source_text, target_text in candidates:
        source_id = source_ids.get(source_text.strip())
        target_id = target_ids.get(target_text.strip())
        if source_id is not None and target_id is not None:
            pair = source_id, target_id
            best[pair] = max(score, best.get(pair, score))
    return best


def best_threshold(scores: Scores, gold: Collection[IdPair]) -> float:
    """Return the threshold of the first best F1 on the way down; 0 if no candidate is in gold."""
    ranked = sorted(scores.items(), key=lambda item: -item[1])
    threshold = best_f1 = 0.0
    correct = 0
    for position, (pair, score) in enumerate(ranked):
        correct += pair in gold
        f1 = _f1(correct / (position + 1), correct / len(gold)) if correct else 0.0
        if f1 > best_f1:
            best_f1 = f1
            # Past the last candidate the original reads beyond its list and crashes. Its own score
            # keeps it, as the comparison is >=.
            after = ranked[position + 1][1] if position + 1 < len(ranked) else score
            threshold = (score + after) / 2
    return threshold


def extract(scores: Scores, threshold: float) -> list[IdPair]:
    """Return the id pairs scoring at least ``threshold``, in the order of first mention."""
    return [pair for pair, score in scores.items() if score >= threshold]


def measure(scores: Scores, gold: Collection[IdPair], threshold: float) -> BuccScore:
    """Score what ``extract`` returns at ``threshold``."""
    extracted = extract(scores, threshold)
    correct = len(set(gold).intersection(extracted))
    counts = {"extracted": len(extracted), "correct": correct, "found": correct, "gold": len(gold)}
    return BuccScore(threshold=threshold, **counts)


def format_score(score: BuccScore, label: str = "best threshold") -> str:
    """Return the line that bucc.py prints; percentages."""
    return (
        f"- {label}={score.threshold:f}: precision={100 * score.precision:.2f}, "
        f"recall={100 * score.recall:.2f}, F1={100 * score.f1:.2f}"
    )


def _f1(precision: float, recall: float) -> float:
    # In this order of operations: the search compares F1 values by >, down to the last bit.
    return 2 * precision * recall / (precision + recall)
