"""Phrases that are hard to read become fewer: each count has a ceiling, which is only lowered."""

from pathlib import Path

import pytest

from tests.docs import prose
from tests.docs.pages import ROOT

# A count may lie this far below its ceiling before the ceiling has to follow it down.
SLACK_SHARE, SLACK = 0.1, 12

# How often each pattern may be in the guides, in the pages for reference and in the packages.
CEILINGS = {
    "what": (14, 183, 605),
    "those that": (9, 54, 191),
    "so many": (6, 8, 44),
    "near": (9, 36, 83),
    "a side": (6, 53, 18),
    "beside": (7, 89, 79),
    "left out": (7, 41, 66),
    "usual": (6, 12, 33),
    ", too": (8, 42, 45),
    "per cent": (6, 269, 20),
    "learnt": (6, 17, 24),
    "go on": (6, 38, 49),
    "there is no": (6, 16, 48),
    "processor": (6, 21, 26),
    "beware": (7, 6, 6),
    "long sentence": (15, 358, 0),
    "summary with ;": (0, 0, 435),
    "summary with :": (0, 0, 509),
    "summary with what": (0, 0, 324),
    "summary too long": (0, 0, 1371),
    "variable named found": (0, 0, 322),
    "undocumented exception": (0, 0, 231),
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
