"""A finished run, read back, is what the run wrote."""

import json
from pathlib import Path

import numpy as np
import pytest

from eval.runs.store import open_run


def test_pairs_are_those_of_the_output(finished_run: Path) -> None:
    run = open_run(finished_run / "work")
    lines = (finished_run / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(run.pairs) > 100
    sources, targets = run.texts
    for place, pair in enumerate(map(json.loads, lines)):
        source, target = int(run.pairs.source[place]), int(run.pairs.target[place])
        assert (pair["score"], pair["source_row"]) == (run.pairs.score[place], source)
        assert (pair["source_text"], pair["target_text"]) == (sources[place], targets[place])
        assert (pair["source_id"], pair["target_id"]) == (
            run.source.id(source),
            run.target.id(target),
        )
        ids = (pair["source_id"], *pair["source_duplicates"])
        assert run.source.all_ids(source) == ids
        assert {run.source.row_by_id[name] for name in ids} == {source}


def test_neighbours_are_the_nearest_by_the_vectors(finished_run: Path) -> None:
    run = open_run(finished_run / "work")
    source, target = (
        side.vectors() / np.linalg.norm(side.vectors(), axis=1, keepdims=True)
        for side in (run.source, run.target)
    )
    cosines = source @ target.T
    for row, (ids, found) in enumerate(
        zip(run.source.neighbours.ids, run.source.neighbours.cosines, strict=True)
    ):
        np.testing.assert_allclose(found, sorted(cosines[row])[:-5:-1], atol=1e-5)
        places = np.searchsorted(run.target.searched, ids)
        np.testing.assert_allclose(found, cosines[row, places], atol=1e-5)
    assert len(run.source.searched) == len(run.source.rows) - 1  # one has no vector


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no finished run in it; make one with mine-corpus"):
        open_run(tmp_path)
    (tmp_path / "run.json").write_text('{"options": {}}')
    with pytest.raises(ValueError, match="holds nothing finished"):
        open_run(tmp_path)
