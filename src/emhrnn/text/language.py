"""The language of texts, by script and by frequent words; and which rules of reading follow from it.

`detected(texts)` is an ISO 639-1 code. Languages with a script of their own are recognised by it, the others by their
most frequent words: every word votes for the languages that have it, with one vote shared among them. What is not
recognised is read as English. The setting `data.language` overrides it.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import islice

AUTO, USUAL = "auto", "en"
SAMPLE, BEGINNING = 500, 500  # texts that are looked at, and characters of each
LEAST, FEWEST = 0.12, 1.5  # votes per word and per text, for a language to be recognised
CHARACTERS = frozenset({"zh", "ja", "th"})  # written without blanks: a character is a word
ELIDING = frozenset({"fr", "it", "ca"})  # l'hôtel is two words
COMPOUNDING = frozenset({"de", "nl", "sv", "da", "no"})  # Hotelzimmer is one word, of which training may know a part

_SCRIPTS = {
    "ja": "[\u3041-\u30ff]", "zh": "[\u3400-\u4dbf\u4e00-\u9fff]", "ko": "[\uac00-\ud7af]", "th": "[\u0e01-\u0e5b]",
    "ru": "[\u0400-\u052f]", "ar": "[\u0620-\u06ff]", "el": "[\u0370-\u03ff]", "he": "[\u05d0-\u05ea]",
    "hi": "[\u0900-\u097f]",
}  # fmt: skip
_KANA = 4.0  # votes of a kana: Japanese has about as many Chinese characters
_FREQUENT = {
    "en": """the a and of to in is was it i that this with for you have are not but they be from had were which very
        there what at on as my we me so no all one if or an out up do can our us by he she his her would will just""",
    "de": """der die und das nicht ist ich ein eine zu den mit war auf es sich auch wir dem sehr für von aber noch nur
        wie im am bei uns leider gut mehr hat aus wurde sind""",
    "fr": """le la les et est pas une des que pour dans qui avec sur plus très nous je vous mais était tout c'est au il
        ce l'hôtel en du un ne""",
    "it": """il che di non è una per sono con ma molto anche della ho più del mi questo gli nel ci era stato come da
        alla la un si le""",
    "es": "el la que de y en los es por con una para las lo del pero muy se más como su está todo nos hay fue sin este",
    "pt": "o que de não uma é com para os muito do da em mais foi mas um como por dos no na ao são você está isso tem",
    "nl": "de het een en van is niet dat ik op voor met zijn was ook maar te er we heel bij als aan erg naar geen wel",
    "sv": "och att det är som en på inte för jag med var av ett till har vi men så om mycket den kan från hade",
    "da": "og det er en at ikke på som af jeg til med for var vi har den meget men de et også der være blev hvis",
    "no": "og det er en å ikke på som av jeg til med for var vi har den veldig men de et også der være ble hvis etter",
    "fi": "ja on ei se oli että en mutta kun olen hyvin niin myös tämä mitä joka ole sen siitä hän ovat vain kuin",
    "pl": "nie na się jest to że do jak ale bardzo po tak co za od był było przez dla są tylko czy tego",
    "cs": "je se na to že si jsem ale jako do by velmi pro tak jsme byl bylo jen když není ve už",
    "tr": "ve bir bu çok için da de ne ama daha gibi olarak en kadar değil var ile ben her sonra oldu iyi mi",
    "ro": "și de în la nu cu este care pe pentru din mai că foarte un au sa dar fost am sunt ce prin",
    "hu": "az és nem hogy is egy volt de meg csak ez ha nagyon van mint már ki el vagy minden még itt azt",
    "id": "yang dan di tidak untuk ini dengan dari saya itu ada sangat ke bisa juga karena pada akan tapi lebih",
    "ca": "el la de que en els és per amb una les no més molt del com però ser han hi als són aquest",
}
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_WITHOUT_BLANKS = "[\u0e01-\u0e5b\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"  # compiled when it is needed: 2 ms


@cache
def _votes() -> dict[str, dict[str, float]]:
    """What a frequent word says for each language that has it."""
    having: dict[str, set[str]] = {}
    for language, words in _FREQUENT.items():
        for word in words.split():
            having.setdefault(word, set()).add(language)
    return {word: dict.fromkeys(languages, 1 / len(languages)) for word, languages in having.items()}


@lru_cache(1 << 16)
def votes_of(word: str) -> dict[str, float]:
    """The votes of a word in lower case, or of a single character of a language that is written without blanks; empty
    for most words."""
    if word.isascii() or word in _votes():
        return _votes().get(word, {})
    scripts = (language for language, script in _SCRIPTS.items() if re.match(script, word))
    return {language: _KANA if language == "ja" else 1.0 for language in islice(scripts, 1)}


def language_of(text: str) -> str | None:
    """The language of a text; None where it is not recognised."""
    words = Counter(_words(text))
    votes = {USUAL: 0.0}  # first: of equal ones, it is taken
    for word, times in words.items():
        for language, vote in votes_of(word).items():
            votes[language] = votes.get(language, 0.0) + vote * times
    best = max(votes, key=votes.__getitem__)
    return best if votes[best] >= max(LEAST * words.total(), FEWEST) else None


def detected(texts: Iterable[str]) -> str:
    """The language of most of the first texts, USUAL where none is recognised."""
    found = Counter(language for text in islice(texts, SAMPLE) if (language := language_of(text[:BEGINNING])))
    return max(found, key=lambda language: (found[language], language == USUAL), default=USUAL)


def _words(text: str) -> Iterable[str]:
    """Words in lower case; characters one by one where there are no blanks between words."""
    for word in _WORD.findall(text.lower()):
        if word.isascii() or not re.match(_WITHOUT_BLANKS, word):
            yield word.replace("’", "'")
        else:
            yield from word
