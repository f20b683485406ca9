"""Words that sentence splitting knows: abbreviations, and what sentences begin with."""

import json
from importlib.resources import files

_TEXT = files("miner").joinpath("assets", "splitting-words.json").read_text(encoding="utf-8")
_WORDS = {name: frozenset(" ".join(lines).split()) for name, lines in json.loads(_TEXT).items()}
# Words whose full stop ends no sentence where a name, a noun or a number may follow; one language
# after the other: en de fr es it pt nl cs pl ru tr, then others.
ABBREVIATIONS = _WORDS["abbreviations"]
# Of these, what ends a sentence as often as not.
MAY_END = _WORDS["may_end"]
# The same where a number follows, and words of their own, or likely ends, elsewhere.
BEFORE_NUMBERS = _WORDS["before_numbers"]
# Words that begin sentences and are hardly ever names or nouns, in the same order.
STARTERS = _WORDS["starters"]
# Of these, what may stand between an initial and a surname.
PARTICLES = _WORDS["particles"]
# Languages in which a number and a full stop is an ordinal: "am 1. Mai".
ORDINAL_LANGUAGES = _WORDS["ordinal_languages"]
# Letters that are words by themselves, and no initials: "Ik hou van u."
LETTER_WORDS = {"nl": "u", "tr": "o", "ru": "я", "uk": "я", "bg": "я"}
