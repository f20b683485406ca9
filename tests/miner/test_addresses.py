"""Addresses in texts of several languages: what ends them, and what makes two different."""

import pytest

from miner.addresses import addresses_in


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # marks and letters of other scripts after the last character
        ("请访问https://example.org/help。", "https://example.org/help"),
        ("请访问https://example.org/help获取更多信息", "https://example.org/help"),
        ("（https://example.org/help）！", "https://example.org/help"),
        ("「https://example.org/ja」、をご覧ください", "https://example.org/ja"),
        ("https://example.org/ja をご覧ください", "https://example.org/ja"),
        ("https://example.org/ko에서 보세요", "https://example.org/ko"),
        ("ดูที่https://example.org/thได้", "https://example.org/th"),
        ("زوروا https://example.org/ar، ثم", "https://example.org/ar"),
        ("देखें https://example.org/hi।", "https://example.org/hi"),
        ("Siehe »https://example.org/de«.", "https://example.org/de"),
        ("Siehe https://example.org/de…", "https://example.org/de"),
        ("Voir «\u00a0https://example.org/fr\u00a0»\u00a0!", "https://example.org/fr"),
        ("Voir «https://example.org/fr»", "https://example.org/fr"),
        ("https://example.org/tr'ye bakın", "https://example.org/tr"),
        # brackets
        ("[https://example.org/help]", "https://example.org/help"),
        ("[Hilfe](https://example.org/help),", "https://example.org/help"),
        ("(https://example.org/Rust_(language))", "https://example.org/Rust_(language)"),
        ("<https://example.org/help>", "https://example.org/help"),
        ("http://[::1]:80/help", "http://[::1]:80/help"),
        # what makes no difference
        ("HTTPS://EXAMPLE.org/help/", "https://example.org/help"),
        ("http://example.org", "https://www.example.org/"),
        ("www.example.org/a?b=c#d", "https://example.org/a?b=c#d"),
        ("https://example.org/K%C3%A4se", "https://example.org/Käse"),
        ("https://example.org/%E4%B8%AD", "https://example.org/中"),
        ("https://example.org/Rust_%28language%29", "https://example.org/Rust_(language)"),
        # other letters than those of ASCII
        ("https://de.example.org/Käse.", "https://de.example.org/Käse"),
        ("https://пример.рф/путь!", "https://пример.рф/путь"),
        # mail
        ("请发邮件至info@example.org索取地图。", "info@example.org"),
        ("メールはInfo@Example.orgまで", "info@example.org"),
        ("Schreiben Sie an »info@example.org«!", "info@example.org"),
        ("mailto:info@example.org.", "info@example.org"),
    ],
)
def test_the_same_address(text: str, expected: str) -> None:
    assert addresses_in(text) == addresses_in(f"See {expected} for more")
    assert len(addresses_in(text)) == 1


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("请访问https://example.org/a。", "https://example.org/b"),
        ("https://example.org/Käse", "https://example.org/Käsekuchen"),
        ("https://example.org/a", "https://example.org/A"),
        ("https://example.org/?a=1", "https://example.org/?a=2"),
        ("https://example.org:80", "https://example.org:81"),
        ("https://example.org", "https://example.com"),
        ("https://sub.example.org", "https://example.org"),
        ("联系info@example.org。", "office@example.org"),
        ("info@example.org", "info@example.com"),
        ("见https://example.org/a和https://example.org/b", "https://example.org/a"),
        ("https://example.org", "nothing"),
    ],
)
def test_different_addresses(text: str, other: str) -> None:
    assert addresses_in(text) != addresses_in(other)


@pytest.mark.parametrize("text", ["", "z.B. 10:30 @ home", "www. a@b x://y", "Node.js", "http:///"])
def test_no_address(text: str) -> None:
    assert addresses_in(text) == set()


@pytest.mark.parametrize(
    "text", ["http://" + "(" * 50_000, "a" * 50_000 + "@", "www." * 20_000, "a@" + "a." * 20_000]
)
def test_long_texts_are_searched_once(text: str) -> None:
    """A search that begins again at each character would take a minute."""
    assert len(addresses_in(text)) <= 1
