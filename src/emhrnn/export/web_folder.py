"""`export_web`: a folder with a page that predicts and explains in a browser, for the evidence model.

    index.html, page.js, style.css    the page
    emhrnn.js                         the model's inference, of use to other pages, too
    model.js                          the model: emhrnn.load("..."), base64 of the bytes of `model_bytes`

A page that is opened from a disk may load scripts but may not read files, so the model is a script. The bytes are a
header (its length in 4 bytes, 4 bytes 0, JSON), then the arrays that it lists, each from a multiple of 8 bytes on:
little-endian, phrases and word vectors as 16-bit floats, all others as 32-bit floats. The page checks every size.
"""

import base64
import json
import re
import struct
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.explain.build import FAR, UNKNOWN_SHARE
from emhrnn.explain.page import stylesheet
from emhrnn.export import Exported, exportable
from emhrnn.files import atomic_folder, write_text
from emhrnn.layers.phrases import NONE
from emhrnn.models.evidence_reader import (
    READING_LENGTH,
    READING_PAUSES,
    READING_UNKNOWN,
    USUAL_WORDS,
    EvidenceReader,
)
from emhrnn.text import TextSettings, Vocabulary, split_sentences
from emhrnn.text.language import COMPOUNDING
from emhrnn.text.vocabulary import ENDINGS, NEGATIONS, SHORTEST_HEAD, SHORTEST_REST, SHORTEST_STEM
from emhrnn.text.words import token_pattern
from emhrnn.training.run import Run

FORMAT = 1
MODEL, RUNTIME, PAGE, STYLE, INDEX = "model.js", "emhrnn.js", "page.js", "style.css", "index.html"
HALF, SINGLE, KEYS, BYTES = "f16", "f32", "u64", "u8"
TYPES = {HALF: "<f2", SINGLE: "<f4", KEYS: "<u8", BYTES: "<u1"}
LARGEST_HALF = 65504.0
SUGGESTED, SUGGESTED_DOCUMENTS, SUGGESTED_CLASSES = 6, 10, 6  # words for each class, in so many documents, of so many
GRU = {"input_weight": "input_weight", "state_weight": "state_weight", "gru_bias": "bias"}

# How sentences are split is asked of sentencex, word by word; these are asked for whatever the vocabulary is.
ABBREVIATED = (
    "mr mrs ms dr prof rev hon st sr jr gen col capt lt sgt gov sen rep pres vs etc inc ltd corp co no vol fig pp al "
    "asst atty dept approx ave blvd rd mt ft maj cmdr adm esq hosp univ assn bros ed eds est govt intl mfg "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun"
)
OPENERS = "the a an this that these those it he she they we i you there in on at but and so if when what why how my our"


def export_web(run: Run, out: Path, *, overwrite: bool = False) -> Exported:
    """Write the folder.

    Raises:
        ConfigError: the model is not an evidence model with a learned segmentation.
        DataError: `out` is taken.
    """
    reader = exportable(run)
    content = model_bytes(run, reader)
    with atomic_folder(out, overwrite=overwrite) as folder:
        for name in (INDEX, RUNTIME, PAGE):
            write_text(folder / name, _static(name))
        write_text(folder / STYLE, stylesheet() + _static(STYLE))
        write_text(folder / MODEL, f'emhrnn.load("{base64.b64encode(content).decode()}");\n')
    return Exported.of(run, out, len(content))


def model_bytes(run: Run, reader: EvidenceReader) -> bytes:
    """The model as emhrnn.js reads it."""
    config, arrays = reader.config, reader.arrays
    vectors = arrays["vectors"]
    encoded, weighed, C = bool(config.encoder_size), bool(config.sentence_weights), len(reader.bias)
    nothing = np.zeros(0, dtype=np.float32)
    directions = [f"weigher.layer.{way}_layer" for way in ("forward", "backward")]
    content: dict[str, tuple[str, np.ndarray]] = {
        "keys": (KEYS, reader.index.keys),
        "table": (HALF, reader.phrase_table),
        "vectors": (HALF, vectors),
        "vocabulary": (BYTES, np.frombuffer("\n".join(run.vocabulary.words).encode(), dtype=np.uint8)),
        "odds": (SINGLE, arrays["pauses.odds"] if config.pauses else nothing),
        "bias": (SINGLE, reader.bias),
        "length_prior": (SINGLE, arrays["length_prior"]),
        "projection": (SINGLE, arrays["encoder.projection"] if encoded else nothing),  # (D, K, H)
        "encoder_bias": (SINGLE, arrays["encoder.bias"] if encoded else nothing),
        "output": (SINGLE, arrays["encoder.output"] if encoded else nothing),
        **{
            name: (SINGLE, np.stack([arrays[f"{way}.{part}"] for way in directions]) if weighed else nothing)
            for name, part in GRU.items()
        },
        "score": (SINGLE, arrays["weigher.score"] if weighed else nothing),
    }
    header = {
        "format": FORMAT, "classes": run.classes, "several": reader.several, "temperature": run.temperature,
        "K": reader.longest, "C": C, "H": config.encoder_size, "G": config.sentence_weights,
        "D": vectors.shape[1] if len(vectors) else 0, "presence": config.presence, "usual_words": USUAL_WORDS,
        "pauses": config.pauses, "reads_ids": config.ids,
        **{name: float(arrays[name]) for name in ("strength", "power", "pause_strength")},
        "reading": {"pauses": READING_PAUSES, "unknown": READING_UNKNOWN, "length": READING_LENGTH},
        "warn": {"unknown_share": UNKNOWN_SHARE, "far": FAR, "lengths": run.lengths},
        "text": text_rules(run.vocabulary, run.text), "suggestions": suggestions(run, reader),
    }  # fmt: skip
    return packed(header, content)


def packed(header: dict[str, Any], content: dict[str, tuple[str, np.ndarray]]) -> bytes:
    """The header with a list of the arrays, then the arrays."""
    listed = [{"name": name, "type": kind, "shape": array.shape} for name, (kind, array) in content.items()]
    told = json.dumps({**header, "arrays": listed}, ensure_ascii=True, allow_nan=False).encode()
    parts = bytearray(struct.pack("<II", len(told), 0) + told)
    for kind, array in content.values():
        parts += bytes(-len(parts) % 8)
        numbers = np.clip(array, -LARGEST_HALF, LARGEST_HALF) if kind == HALF else array
        parts += numbers.astype(TYPES[kind]).tobytes()
    return bytes(parts)


# ------------------------------------------------------------------ how text is read


def text_rules(vocabulary: Vocabulary, text: TextSettings) -> dict[str, Any]:
    """Words by the same pattern; sentences by a simple rule and by what sentencex says of each word: a full stop after
    an abbreviation ends no sentence, after a marker (`U.S.`) only before a starter (`The`)."""
    pieces = {piece for word in vocabulary.words for piece in word.split(".") if piece.isalpha() and len(piece) <= 6}
    pieces |= {*ABBREVIATED.split(), *map(chr, range(ord("a"), ord("z") + 1))}
    forms = sorted({form for piece in pieces for form in (piece, piece.capitalize(), piece.upper())})
    starters = sorted({word.capitalize() for word in {*vocabulary.words[:5000], *OPENERS.split()} if word.isalpha()})

    def joined(before: str, after: str) -> bool:
        return len(split_sentences(f"of {before}. {after} there", text.language)) == 1

    relatives = {
        "endings": ENDINGS, "negations": NEGATIONS, "stem": SHORTEST_STEM, "head": SHORTEST_HEAD, "rest": SHORTEST_REST,
    }  # fmt: skip
    whole = {form for form in forms if joined(form, "Tom")}
    never = {form for form in whole if joined(form, "The")}
    return {
        "pattern": javascript_pattern(token_pattern(text.language)),
        "lowercase": text.lowercase,
        "language": text.language,
        "relatives": relatives if text.language in COMPOUNDING else None,
        **asdict(text.limits),
        "abbreviations": sorted(never),
        "markers": sorted(whole - never),
        "starters": [word for word in starters if not joined("the U.S", word)],
    }


BLANKS = r" \t\n\v\f\r\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
CLASSES = {  # of Python, as JavaScript writes them inside [...] with the flag u; \W is met only in [^\W...]
    r"\w": r"\p{L}\p{N}_",
    r"\s": BLANKS,
    r"\d": r"\p{Nd}",
}


def javascript_pattern(pattern: str) -> str:
    """A regular expression of Python in the syntax of JavaScript, where `\\w` is ASCII and `[^\\W...]` has no twin: the
    letters and digits, unless they are among the others."""

    def without(match: re.Match[str]) -> str:
        digits, others = r"\d" in match[1], match[1].replace(r"\d", "").replace("_", "")
        letters = r"[\p{L}\p{Nl}\p{No}]" if digits else r"[\p{L}\p{N}]"
        return f"(?:(?![{others}]){letters})" if others else letters

    def inside(match: re.Match[str]) -> str:
        text = match[0]
        for python, javascript in CLASSES.items():
            text = text.replace(python, javascript)
        return re.sub(r"-(?=\])", r"\\-", text)

    pattern = re.sub(r"\\U([0-9a-fA-F]{8})", lambda match: chr(int(match[1], 16)), pattern).replace(r"\"", '"')
    pattern = re.sub(r"\[\^\\W([^]]*)\]", without, pattern)
    pattern = re.sub(r"\[(?:\\.|[^]\\])*\]", inside, pattern)
    return pattern.replace(r"\S", f"[^{BLANKS}]").replace(r"\s", f"[{BLANKS}]").replace(r"\d", r"\p{Nd}")


# ------------------------------------------------------------------ words to begin with


def suggestions(run: Run, reader: EvidenceReader) -> dict[str, list[str]]:
    """The words that say most for each of the first classes, alone."""
    words = [i for i, word in enumerate(run.vocabulary.words) if i and word.isalpha() and len(word) > 2]
    each = np.arange(len(words) + 1)
    batch = Batch(np.array(words, dtype=np.int64), sentence_offsets=each, document_offsets=each, rows=each[:-1])
    rows = reader.index.rows(batch, 1)[:, 0] if words else each[:0]
    seen = rows != NONE
    seen[seen] = reader.arrays["ngrams.documents"][rows[seen]] >= SUGGESTED_DOCUMENTS
    said = reader.phrase_table[rows[seen]]
    said = said - said.mean(axis=1, keepdims=True)
    names = [run.vocabulary.words[words[i]] for i in np.flatnonzero(seen)]
    best = np.argsort(-said, axis=0, kind="stable")[:SUGGESTED]
    return {
        label: [names[i] for i in best[:, y] if said[i, y] > 0]
        for y, label in enumerate(run.classes[:SUGGESTED_CLASSES])
    }


def _static(name: str) -> str:
    return files("emhrnn.export").joinpath("static", name).read_text(encoding="utf-8")
