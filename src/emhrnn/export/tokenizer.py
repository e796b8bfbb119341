"""Our words as a file of the `tokenizers` library, for programs that have nothing else of ours.

It splits by the same pattern. What cannot be said there differs in rare words: lower case comes before splitting, and
so does the shortening of runs of marks.
"""

import re

from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordLevel

from emhrnn.corpus import TextSettings
from emhrnn.text import UNK, Vocabulary
from emhrnn.text.words import TOKEN_PATTERN

SHORTENED = [  # long runs of marks, as in text/words.py
    (r"(?=[!?]*!)(?=[!?]*\?)[!?]{2,}", "?!"),
    (r"!{4,}", "!!!"),
    (r"\?{4,}", "???"),
    (r"-{3,}", "--"),
    *((rf"\{mark}{{4,}}", mark * 3) for mark in ".*=_~#+'`"),
]


def _spelt_out(pattern: str) -> str:
    """Characters for their escapes, which the library's regular expressions do not know."""
    escapes = re.compile(r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})")
    return escapes.sub(lambda match: chr(int(match[1] or match[2], 16)), pattern)


def tokenizer(vocabulary: Vocabulary, text: TextSettings) -> Tokenizer:
    made = Tokenizer(WordLevel({word: i for i, word in enumerate(vocabulary.words)}, unk_token=UNK))
    steps = [normalizers.Replace(Regex(r"<[bB][rR]\s?/?>"), " "), normalizers.NFC()]
    if text.lowercase:
        steps.append(normalizers.Lowercase())
    steps.append(normalizers.Replace("\u2019", "'"))
    steps += [normalizers.Replace(Regex(pattern), short) for pattern, short in SHORTENED]
    made.normalizer = normalizers.Sequence(steps)
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(_spelt_out(TOKEN_PATTERN)), "isolated")]
    )
    return made
