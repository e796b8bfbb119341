"""Text in the encodings of everyday files is read as it was written."""

import io
from pathlib import Path

import pytest

from emhrnn.corpus import Source
from emhrnn.corpus.readers.input import decode, detect
from emhrnn.errors import DataError

TEXTS = {
    "cp1252": [
        "label;text\nGröße;Die Größe passt nicht, leider zu groß.\nGrüße;Schöne Grüße aus München\n",
        "label,text\nbon,Très bon séjour à l'hôtel, le déjeuner était délicieux\n",
        "label,text\nbueno,El niño comió mañana en el año nuevo\n",
        "label,text\ngood,It’s “great” – really, for 5 €\n",
        "label,text\ngood,one café\n",
    ],
    "cp1250": ["label;text\ndobry;Zażółć gęślą jaźń, bardzo dobry hotel i świetna obsługa\n"],
    "cp1251": ["label;text\nхорошо;Очень хороший отель, всем рекомендую\nплохо;Ужасный сервис и грязные номера\n"],
    "koi8_r": ["label;text\nхорошо;Очень хороший отель, всем рекомендую\nплохо;Ужасный сервис и грязные номера\n"],
    "cp1253": ["label;text\nκαλό;Πολύ καλό ξενοδοχείο και εξαιρετικό προσωπικό\n"],
    "cp932": ["label,text\n良い,とても良いホテルでした。また行きたいです。\n"],
    "euc_jp": ["label,text\n良い,とても良いホテルでした。また行きたいです。\n"],
    "big5": ["label,text\n好,這家酒店非常好，服務也很好。我們下次還會再來，推薦給大家。\n"],
    "cp949": ["label,text\n좋음,정말 좋은 호텔이었습니다. 다시 가고 싶어요.\n"],
}
CASES = [(encoding, text) for encoding, texts in TEXTS.items() for text in texts]
UTF = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"]


@pytest.mark.parametrize(("encoding", "text"), CASES)
@pytest.mark.parametrize("times", [1, 3000])
def test_texts_of_many_languages(encoding: str, text: str, times: int) -> None:
    text *= times
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize("encoding", UTF)
@pytest.mark.parametrize("text", ["label,text\ngood,fine soup\n", TEXTS["cp1252"][0], TEXTS["cp1253"][0] * 3000])
def test_unicode_is_recognised_for_certain(encoding: str, text: str) -> None:
    assert decode(text.encode(encoding)) == text


def test_the_first_other_byte_may_come_late() -> None:
    content = b"good,fine soup\n" * 200_000 + "gut,schöne Grüße\n".encode("cp1252")
    assert detect(io.BytesIO(content).read) == "cp1252"


def test_utf8_with_some_broken_bytes_stays_utf8() -> None:
    assert detect(io.BytesIO("Größe und Grüße\n".encode() + b"caf\xe9\n").read) == "utf-8"


def test_an_encoding_that_is_given(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("text,label\nÇok güzel şey,iyi\n".encode("cp1254"))
    source = Source(path, encoding="cp1254")
    assert [record.text for record in source] == ["Çok güzel şey"]
    assert list(source.encodings) == ["cp1254"]
    for unknown in ("klingon", "zip", ""):
        with pytest.raises(DataError, match=r"unknown encoding .*utf-8"):
            Source(path, encoding=unknown)


@pytest.mark.parametrize("encoding", UTF[2:])
def test_utf16_with_and_without_its_mark(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.csv").write_bytes("text,label\ngood,1\nbad,2\n".encode(encoding))
    source = Source(tmp_path / "a.csv")
    assert [record.label for record in source] == ["1", "2"]
    assert list(source.encodings) == [encoding]
