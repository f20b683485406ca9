"""Signatures name all that a figure hangs on."""

from __future__ import annotations

from dataclasses import dataclass

from eval.output import encoder_names, sign


@dataclass
class Named:
    """An encoder that has others, or preparations of its own, for some languages."""

    name: str
    others: dict[str, str]

    def for_language(self, language: str) -> Named:
        return Named(self.others.get(language, self.name), {})


def test_what_was_added_for_a_language_is_named() -> None:
    mini = Named("mini@1", {"sv": "mini/more@2", "da": "mini/more@2"})
    assert encoder_names(mini, ["de", "en"]) == "mini@1"
    assert encoder_names(mini, ["de", "sv", "da"]) == "mini@1+mini/more@2"


def test_a_preparation_of_text_is_no_other_encoder() -> None:
    assert encoder_names(Named("laser2@1", {"de": "laser2@1/de"}), ["de", "en"]) == "laser2@1"


def test_a_record_is_signed_and_the_signature_shown() -> None:
    shown: list[str] = []
    record = sign(shown.append, "task", {"figures": 1}, sentences=3)
    assert list(record) == ["task", "figures", "signature"]
    assert shown == [record["signature"]]
    assert record["signature"].startswith("task|sentences:3|v:")
