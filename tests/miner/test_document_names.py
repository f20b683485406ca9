"""What is left of names without languages, and which names that makes one."""

import pytest

from miner.document_pairing import language_free, same_names


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("https://a.org/de/start.html", "https://a.org/en/start.html"),
        ("https://a.org/de/start.html", "https://a.org/start.html"),
        ("https://de.a.org/x?id=7", "https://en.a.org/x?id=7"),
        ("https://a.org/x?lang=fr&id=7", "https://a.org/x?id=7&lang=en"),
        ("https://a.org/x?id=7", "https://a.org/x?id=7&hl=en-US"),
        ("https://a.org/pt-BR/x", "https://a.org/en-us/x"),
        ("https://a.org/ja-jp/x", "https://a.org/en-au/x"),
        ("https://a.org/zh-Hant-TW/x", "https://a.org/en/x"),
        ("guide/start.de.html", "guide/start.en.html"),
        ("start_de.txt", "start_EN.txt"),
        ("start.txt", "start.txt"),
    ],
)
def test_alike(source: str, target: str) -> None:
    assert language_free(source) == language_free(target)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("https://a.org/de/start.html", "https://a.org/en/ende.html"),
        ("https://a.org/x?id=7", "https://a.org/x?id=8"),
        ("https://a.org/us/x", "https://a.org/in-us/x"),  # no language stands before it
        ("design.txt", "sign.txt"),
    ],
)
def test_different(source: str, target: str) -> None:
    assert language_free(source) != language_free(target)


def test_only_names_of_one_document_a_side_are_paired() -> None:
    source = ["de/a", "b", "de/b", "b/de", "de", "c", "1.txt", "2.TXT"]
    target = ["en/c", "en/a", "a/fr", "en/b", "en", "1.txt", "2.TXT"]
    assert same_names(source, target) == [(5, 0)]
