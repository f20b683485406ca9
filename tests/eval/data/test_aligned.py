"""The layouts of aligned texts, and what can be wrong with them."""

from pathlib import Path

import pytest

from eval.tasks.aligned import aligned_files, english_of, load_aligned

LAYOUTS = {
    "plain": {"de": "de.txt", "en": "en.txt", "zh-Hant": "zh-Hant.txt"},
    "NTREX-128": {
        "deu": "newstest2019-ref.deu.txt",
        "eng": "newstest2019-src.eng.txt",
        "eng-US": "newstest2019-ref.eng-US.txt",
    },
    "FLORES": {"deu_Latn": "deu_Latn.devtest", "eng_Latn": "eng_Latn.devtest"},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(tmp_path: Path, layout: str) -> None:
    names = LAYOUTS[layout]
    for name in names.values():
        (tmp_path / name).write_text(f"{name}\nzwei\n")
    (tmp_path / "README.md").write_text("no text")
    assert aligned_files(tmp_path) == {key: tmp_path / name for key, name in names.items()}
    data = load_aligned(tmp_path)
    assert data.languages == sorted(names)
    assert data.texts == {key: [name, "zwei"] for key, name in names.items()}
    assert english_of(data.languages, tmp_path) in ("en", "eng", "eng_Latn")


def test_the_languages_asked_for_in_that_order(tmp_path: Path) -> None:
    for name in ("de", "en", "fr"):
        (tmp_path / f"{name}.txt").write_text("x\n")
    assert load_aligned(tmp_path, ["fr", "de", "fr"]).languages == ["fr", "de"]


def test_bad_folders(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nowhere: folder not found"):
        aligned_files(tmp_path / "nowhere")
    with pytest.raises(
        ValueError,
        match=r"contains no aligned texts; expected a file per language, such as de\.txt",
    ):
        aligned_files(tmp_path)
    (tmp_path / "de.txt").write_text("eins\nzwei\n")
    with pytest.raises(
        ValueError, match="no English text; add a file named by the language en or eng"
    ):
        english_of(["de"], tmp_path)
    with pytest.raises(ValueError, match=r"no language 'fr'; choose one of de with --lang$"):
        load_aligned(tmp_path, ["fr"])
    (tmp_path / "en.txt").write_text("one\n")
    with pytest.raises(
        ValueError, match=r"en.txt: the number of lines is 1, but 2 in .*de.txt; pass files"
    ):
        load_aligned(tmp_path)
    (tmp_path / "en.txt").write_text("")
    with pytest.raises(ValueError, match=r"en.txt: empty"):
        load_aligned(tmp_path, ["en"])
    (tmp_path / "de.devtest").write_text("eins\n")
    with pytest.raises(ValueError, match=r"de.devtest and de.txt are both of the language 'de'"):
        load_aligned(tmp_path)
