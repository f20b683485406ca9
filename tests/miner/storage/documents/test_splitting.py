"""Where sentences end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.storage.documents.splitting import sentence_spans, split_sentences

ENDS = "|"  # marks the boundaries in the texts below


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("en", "It rains.| It does not.| Why?| Because!"),
        ("en", "Dr. Who met Mr. J. R. Smith of the U.S. Navy at 5 p.m. on the 3.| Then he left."),
        ("en", 'He said: "No."| She said "Yes!" and left.'),
        ("en", "It costs 3.50 euros, e.g. at example.com.| Really..."),
        ("en", "He was 25.| She was not."),
        ("de", "Am 1. Mai kam Dr. Müller im 19. Jahrhundert usw. zurück.| Das war 1848.| Ja."),
        ("de", "„Das ist gut.“| Er ging. „Warum?“, fragte sie.".replace("ging. ", "ging.| ")),
        ("fr", "« Nous partons. »| Elle a dit : « Non ! » avant midi.| Fin."),
        ("es", "¿Quién es?| ¡Es él!| No lo sé."),
        ("ru", "Он родился в 1990 г. в Москве.| «Да».| И т.д."),
        ("cs", "Bylo 5. května.| Např. Praha."),
        ("zh", "你好。|世界！|“真的吗？”|他说。"),
        ("ja", "「行きます。」と彼は言った。|そうですか。|はい。"),
        ("ja", "「行く?」と言った。"),
        ("hi", "यह एक वाक्य है।| यह दूसरा है।"),
        ("ar", "هل هذا صحيح؟| نعم."),
        (None, "Vergleiche Kap. 3. Das ist alles."),  # may be an ordinal
    ],
)
def test_boundaries(language: str | None, marked: str) -> None:
    sentences = [part.strip() for part in marked.split(ENDS)]
    assert split_sentences(marked.replace(ENDS, ""), language) == sentences


@given(st.text(alphabet='ab A.!?"“”»。」1 \n', max_size=60))
def test_spans_hold_everything_but_spaces_in_order(text: str) -> None:
    spans = list(sentence_spans(text))
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(text.split())
    ends = [0, *(end for _, end in spans)]
    assert all(a < b and a >= last for (a, b), last in zip(spans, ends, strict=False))
    assert all(text[a:b] == text[a:b].strip() for a, b in spans)
