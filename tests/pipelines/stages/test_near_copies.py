"""``--near-duplicates``: the best of near-copies stays, whatever the shards."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.cli.mine import mine_corpus
from pipelines.stages.summary import read_summary
from tests.pipelines.worlds import read_jsonl, write_lines


@pytest.mark.parametrize("options", [[], ["--shards", "3"], ["--filters", "short", "--align"]])
def test_near_copies_are_left_out(
    tmp_path: Path, sample_sentences: list[str], tiny_encoder: str, options: list[str]
) -> None:
    """Sentences come three times, twice with a few letters more."""
    corpora = []
    for name, start in (("src", 0), ("tgt", 300)):
        lines = [
            line + more for line in sample_sentences[start : start + 25] for more in ("", "!", " .")
        ]
        corpora.append(str(write_lines(tmp_path / f"{name}.txt", lines)))
    run = [*corpora, "--encoder", tiny_encoder, "--retrieval", "forward", "-q", "--all", *options]
    every, kept = tmp_path / "every.jsonl", tmp_path / "kept.jsonl"
    assert mine_corpus([*run, "-o", str(every)]) == 0
    work = tmp_path / "work"
    for _ in range(2):
        thinned = [*run, "-o", str(kept), "--near-duplicates", "--work-dir", str(work)]
        assert mine_corpus(thinned) == 0
        found, before = read_jsonl(kept), read_jsonl(every)
        places = [before.index(pair) for pair in found]
        assert places == sorted(places)
        assert places[0] == 0
        assert len(found) < len(before) / 2
        assert read_summary(work)["near_copies"] == len(before) - len(found)
        assert read_summary(work)["pairs"] == len(found)
    if "--filters" in options:
        rejected = read_jsonl(tmp_path / "kept.rejected.jsonl")
        assert rejected == read_jsonl(tmp_path / "every.rejected.jsonl")
    # A pair that was left out has a better one whose beginnings are the same.
    begins = [(pair["source_text"][:20], pair["target_text"][:20]) for pair in before]
    for place in set(range(len(before))) - set(places):
        assert begins[place] in begins[:place]
