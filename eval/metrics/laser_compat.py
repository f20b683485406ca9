"""BUCC scores as LASER's bucc.py prints them, for comparison with published figures.

Where it differs from ``eval.metrics.bucc``: a sentence that occurs more than once on its side takes
part in nothing; equal scores can be parted by the search for a threshold, though not by the
extraction that follows; the comparison is ``score >= threshold``.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from eval.metrics.bucc import BuccScore, IdPair

ScoredTexts = tuple[float, str, str]  # score, source text, target text
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
    for score, source, target in candidates:
        own, other = source_ids.get(source.strip()), target_ids.get(target.strip())
        if own is not None and other is not None:
            best[own, other] = max(score, best.get((own, other), score))
    return best


def best_threshold(scores: Scores, gold: Collection[IdPair]) -> float:
    """Return the threshold of the first best F1 on the way down; 0 if no candidate is in gold."""
    ranked = sorted(scores.items(), key=lambda item: -item[1])
    # Past the last candidate the original reads beyond its list and crashes. Its own score keeps
    # it, as the comparison is >=.
    following = [score for _, score in ranked[1:] + ranked[-1:]]
    threshold = best_f1 = 0.0
    correct = 0
    for place, ((pair, score), after) in enumerate(zip(ranked, following, strict=True), start=1):
        correct += pair in gold
        if correct:
            precision, recall = correct / place, correct / len(gold)
            # In this order of operations: F1 values are compared by >, down to the last bit.
            f1 = 2 * precision * recall / (precision + recall)
            if f1 > best_f1:
                best_f1, threshold = f1, (score + after) / 2
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


def format_score(score: BuccScore, label: str) -> str:
    """Return the line that bucc.py prints; percentages."""
    return (
        f"- {label}={score.threshold:f}: precision={100 * score.precision:.2f}, "
        f"recall={100 * score.recall:.2f}, F1={100 * score.f1:.2f}"
    )
