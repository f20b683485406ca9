"""Phrases that are hard to read become fewer: each count has a ceiling, which is only lowered."""

from pathlib import Path

import pytest

from tests.docs import prose
from tests.docs.pages import ROOT

# A count may lie this far below its ceiling before the ceiling has to follow it down.
SLACK_SHARE, SLACK = 0.1, 12

# How often each pattern may be in the guides, in the pages for reference and in the packages.
CEILINGS = {
    "what": (8, 15, 6),
    "those that": (3, 10, 0),
    "so many": (0, 0, 1),
    "near": (2, 1, 7),
    "a side": (0, 3, 0),
    "beside": (1, 9, 3),
    "left out": (1, 8, 0),
    "usual": (0, 0, 5),
    ", too": (2, 3, 2),
    "per cent": (0, 22, 1),
    "learnt": (0, 0, 0),
    "go on": (0, 2, 0),
    "there is no": (0, 0, 1),
    "processor": (0, 0, 3),
    "beware": (1, 0, 0),
    "long sentence": (7, 32, 0),
    "summary with ;": (0, 0, 0),
    "summary with :": (0, 0, 0),
    "summary with what": (0, 0, 0),
    "summary too long": (0, 0, 0),
    "variable named found": (0, 0, 12),
    "undocumented exception": (0, 0, 0),
}


def test_every_pattern_has_its_ceilings() -> None:
    assert list(CEILINGS) == list(prose.COUNTED)


@pytest.mark.parametrize("name", CEILINGS)
def test_a_pattern_does_not_spread(name: str) -> None:
    rule = prose.RULES.get(name, prose.SUMMARY_RULE)
    for scope, ceiling in zip(prose.SCOPES, CEILINGS[name], strict=True):
        count = prose.counts(name)[scope]
        assert count <= ceiling, (
            f"{name!r} is {count} times in the {scope}, {count - ceiling} more than before: {rule} "
            f"(docs/style.md). Most are in {prose.worst(name, scope)}. "
            f"Every place: python -m tests.docs.prose {name!r}"
        )
        assert ceiling <= count * (1 + SLACK_SHARE) + SLACK, (
            f"{name!r} is only {count} times in the {scope}: lower its ceiling from {ceiling}"
        )


def test_sentences_are_counted() -> None:
    block = "- Run `adit mine a b`. It writes [two pages](web.md), e.g. one. **Then** stop (now)."
    assert prose.sentences(block) == [
        "Run Code.",
        "It writes two pages, e.g. one.",
        "**Then** stop (now).",
    ]


def test_code_of_a_page_is_not_prose(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Title\n\n    adit what\n\n```\nwhat\n```\n- one\n  line\n- two\n", "utf-8")
    assert list(prose._blocks(page)) == [(1, "Title"), (8, "- one line"), (10, "- two")]


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 700
