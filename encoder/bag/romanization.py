"""Romanised spellings, which are similar for a name in most alphabets.

Accents are removed. Cyrillic and Greek letters, and some of other alphabets, are transcribed by
tables, roughly as in passports and on maps. The sound of another letter is from its Unicode name:
ARABIC LETTER JEEM is j, DEVANAGARI VOWEL SIGN AU is au, HANGUL SYLLABLE GUG is gug.

Abjads omit vowels, Indic scripts imply them, and languages distinguish different consonants. So
``to_sounds`` keeps only classes of consonants.
"""

import re
import string
import unicodedata

LETTERS = string.ascii_lowercase + string.digits  # the characters of romanised text
SOUNDS = "pksjtlmn" + string.digits  # classes of consonants

_CYRILLIC = (
    "а a б b в v г g д d е e ж zh з z и i к k л l м m н n о o п p р r с s т t у u ф f х kh ц ts "
    "ч ch ш sh щ shch ы y э e ю yu я ya і i є e ґ g ј j љ lj њ nj ћ c ђ dj џ dz ѕ dz"
)
_CYRILLIC_ELSEWHERE = "ә a ғ g қ k ң n ө o ұ u ү u һ h ҳ h ҷ j ҡ k ҙ z ҫ s җ j ъ a"
_GREEK = (
    "α a β v γ g δ d ε e ζ z η i θ th ι i κ k λ l μ m ν n ξ x ο o π p ρ r σ s ς s τ t υ y φ f χ ch "
    "ψ ps ω o"
)
_ARMENIAN = "ծ ts ց ts ձ dz ջ j ճ ch խ kh ո o ւ u ը e և ev"  # other letters by their names
_GEORGIAN = "ც ts წ ts ძ dz ჯ j ხ kh ჟ zh ფ p ქ k"
_LATIN, _LATIN_ELSEWHERE = "ß ss æ ae ø o œ oe ł l đ d ð d þ th ı i", "ə a ŋ n"
_ARABIC, _KHMER = "چ ch ة a ى a ع a ۆ o ۇ u ۈ u ە a", "អ a"
_SILENT = "ьءٰฯๆ็"

# The sound of a letter in its Unicode name, by script, without a consonant's inherent vowel.
_NAMES = re.compile(
    r"(?:HANGUL|ETHIOPIC) SYLLABLE (?:GLOTTAL |PHARYNGEAL )?(?P<syllable>[A-Z]+)$"
    r"|(?:KATAKANA|HIRAGANA) LETTER (?:SMALL (?!TU))?(?P<kana>[A-Z]+)$"
    r"|.* VOWEL SIGN (?:.* )?(?P<sign>[AEIOUY]+)[A-Z-]*$"
    r"|.* VOWEL SIGN VOCALIC (?P<vocalic>[RL])+$"
    r"|THAI CHARACTER SARA (?P<sara>[AEIOU]+M?)\b"
    r"|.* SIGN (?:ANUSVARA|CANDRABINDU|NIKAHIT)(?P<nasal>)$"
    r"|GURMUKHI (?:TIPPI|SIGN BINDI)(?P<tippi>)$"
    r"|SINHALA LETTER (?:.* )?(?P<sinhala>[^AEIOU ]+|[AEIOU]+)[A-Z]*$"
    r"|.* (?:LETTER|CHARACTER)(?: FINAL| FARSI| SMALL| CHILLU| CANDRA| KHANDA| INDEPENDENT VOWEL)*"
    r" (?!MAI |THANTHAKHAT)(?P<letter>[^AEIOU ]+|[AEIOU]+)"
)


def _sound_of_name(character: str) -> str:
    match = _NAMES.match(unicodedata.name(character, ""))
    sound = match and (match[match.lastgroup or ""].lower() or "n")  # empty for nasal signs
    return re.sub(r"(.)\1+", r"\1", sound or "")


def _table(*alphabets: str) -> dict[int, str]:
    pairs = " ".join(alphabets).split()
    return {ord(letter): latin for letter, latin in zip(pairs[::2], pairs[1::2], strict=True)}


_THREE_ALPHABETS = _table(_CYRILLIC, _GREEK, _LATIN)
_NOT_LETTERS = re.compile(f"[^{LETTERS}\n]+")
_TABLE = {
    **_THREE_ALPHABETS,
    **_table(_CYRILLIC_ELSEWHERE, _LATIN_ELSEWHERE, _ARMENIAN, _GEORGIAN, _ARABIC, _KHMER),
    **{ord(letter): letter for letter in LETTERS},
    **dict.fromkeys(map(ord, _SILENT), ""),
}


class _Spellings(dict[int, str]):
    def __missing__(self, code: int) -> str:
        character = chr(code)
        digit = unicodedata.digit(character, None)
        parts = unicodedata.normalize("NFKD", character)
        if digit is not None:
            spelling = str(digit)
        elif ord(parts[0]) in _TABLE:  # a letter with accents, or several letters in one
            spelling = "".join(_TABLE.get(ord(part), "") for part in parts)
        else:
            spelling = _sound_of_name(character) if code >= 128 else ""
        self[code] = "".join(letter for letter in spelling if letter in LETTERS)
        return self[code]


_SPELLINGS = _Spellings({**_TABLE, ord("\n"): "\n"})
_CLASSES = str.maketrans(
    {letter: name for name in "pksjtlmn" for letter in name}
    | dict.fromkeys("bf", "p")
    | dict.fromkeys("cgq", "k")
    | {"d": "t", "z": "s", "r": "l", "x": "ks"}
    | dict.fromkeys("aeiouhvwy", "")
)
_REPEATED = re.compile(r"([a-z])\1+")


def romanize(text: str) -> str:
    """Spell a text in the characters a to z, 0 to 9 and newline.

    Most letters are spelled by sound. Removed are spaces, punctuation, Chinese characters,
    syllables of Yi and Inuktitut, and others without a letter's name.
    """
    return text.lower().translate(_SPELLINGS)


def romanize_three_alphabets(text: str) -> str:
    """Spell most Greek, Latin and Cyrillic letters in a to z.

    Of other characters, only 0 to 9 and newlines stay, after NFKD.
    """
    bare = unicodedata.normalize("NFKD", text.lower())
    return _NOT_LETTERS.sub("", bare.translate(_THREE_ALPHABETS))


def to_sounds(letters: str) -> str:
    """Replace letters of a text from ``romanize`` by classes of consonants.

    b and f are p, c, g and q are k, d is t, z is s, r is l, x is ks, and ng is n. Vowels, h, v, w
    and y are removed. Then repeated letters merge (``london``: ``lntn``). Digits stay.
    """
    return _REPEATED.sub(r"\1", letters.replace("ng", "n").translate(_CLASSES))
