"""Which language a text is of, and how it is then read."""

import numpy as np
import pytest

from emhrnn.corpus import Corpus
from emhrnn.text import TextSettings, Vocabulary, WordEncoder, read_document, tokenise
from emhrnn.text.language import detected, language_of
from emhrnn.text.vocabulary import encoded_words

SENTENCES = {
    "en": "The room was nice and the breakfast was good, but it is far from the station.",
    "de": "Das Zimmer war sehr schön, aber das Frühstück war nicht gut und der Bahnhof ist weit.",
    "fr": "L'hôtel était très bien, mais c'est un peu loin de la gare et le petit-déjeuner est cher.",
    "it": "La camera era molto bella, ma il bagno era piccolo e la colazione non è stata buona.",
    "es": "El hotel está muy bien y la comida es buena, pero el desayuno no.",
    "pt": "O quarto é muito bom, mas não tem janela e o café foi frio.",
    "nl": "Het hotel was heel goed en niet duur, maar het ontbijt was koud.",
    "sv": "Det var ett mycket bra hotell och vi trivdes, men frukosten var inte god.",
    "pl": "Hotel był bardzo dobry, ale śniadanie nie było smaczne i jest daleko.",
    "zh": "酒店很好，服务不错，就是房间太小了。",
    "ja": "とても良いホテルでした。朝食は美味しくなかったです。",
    "ko": "방이 아주 깨끗했어요. 아침은 별로였어요.",
    "th": "ห้องพักสะอาดมาก อาหารเช้าไม่อร่อย",
    "ru": "Отличный отель, но завтрак не понравился.",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_languages_are_recognised(language: str) -> None:
    assert language_of(SENTENCES[language]) == language
    assert detected(["?", SENTENCES[language], "1 2 3"]) == language


@pytest.mark.parametrize("text", ["", "Great food", "k1x3 w5 w9.", "Good soup at 3.", "10/10!!!", "de"])
def test_what_is_not_recognised_is_read_as_english(text: str) -> None:
    assert language_of(text) is None
    assert detected([text] * 30) == "en"


def test_the_language_of_most_texts_counts() -> None:
    assert detected([SENTENCES["en"], *[SENTENCES["de"]] * 2]) == "de"
    assert detected([SENTENCES["en"], SENTENCES["de"]]) == "en"


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("fr", "L’hôtel d'Orsay, aujourd'hui: qu'est-ce?", "l' hôtel d' orsay , aujourd'hui : qu' est-ce ?"),
        ("it", "Dell'albergo un'ottima idea, c'è l'aria", "dell' albergo un' ottima idea , c' è l' aria"),
        ("en", "O'Brien's l'hôtel", "o'brien 's l'hôtel"),
        ("th", "สะอาดมาก ok", "ส ะ อ า ด ม า ก ok"),
        ("zh", "很好。Wifi不错", "很 好 。 wifi 不 错"),
    ],
)
def test_words_follow_the_language(language: str, text: str, words: str) -> None:
    assert tokenise(text, language=language) == words.split()
    vocabulary = Vocabulary.from_words(words.split())
    for native in (True, False):
        encoder = WordEncoder(vocabulary, TextSettings(language=language), native=native)
        (document,), encoded = encoder.locate([text])
        assert vocabulary.decode(encoded.words) == words.split()
        assert np.array_equal(encoder.encode([text]).words, encoded.words)
        expected = read_document(text, language=language)
        assert document.starts.tolist() == expected.starts.tolist()
        assert document.ends.tolist() == expected.ends.tolist()


@pytest.mark.parametrize(
    ("word", "relative"),
    [
        ("hotelzimmer", "zimmer"), ("zimmern", "zimmer"), ("freundliches", "freundlich"), ("zimmer", "zimmer"),
        ("unfreundlich", "<unk>"), ("missfreundlich", "<unk>"), ("berg", "<unk>"), ("zimmer7", "<unk>"),
    ],
)  # fmt: skip
def test_an_unknown_german_word_is_read_as_a_relative(word: str, relative: str) -> None:
    vocabulary = Vocabulary.from_words(["zimmer", "freundlich", "gut"])
    assert vocabulary.decode(encoded_words([word], vocabulary, "de")) == [relative]
    assert vocabulary.decode(WordEncoder(vocabulary, TextSettings(language="de")).encode([word]).words)[0] == relative
    known = word if word in vocabulary else "<unk>"
    assert vocabulary.decode(encoded_words([word], vocabulary, "en")) == [known]


def test_training_and_new_texts_are_read_alike() -> None:
    """A rare word of the training data is read as its relative, too, also when the vocabulary changes later."""
    texts = ["Das Zimmer ist gut.", "Das Zimmer ist nicht gut.", "Das Hotelzimmer ist gut."]
    corpus = Corpus.from_texts(texts, ["a", "b", "a"], min_count=2)
    assert corpus.text.language == "de"
    assert corpus.vocabulary.decode(corpus.batch(np.array([2])).words) == ["das", "zimmer", "ist", "gut", "."]
    whole = Corpus.from_texts(texts, ["a", "b", "a"])
    assert "hotelzimmer" in whole.vocabulary
    assert np.array_equal(whole.remap(corpus.vocabulary).batch(np.arange(3)).words, corpus.batch(np.arange(3)).words)
