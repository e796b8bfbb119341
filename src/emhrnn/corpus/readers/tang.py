"""Tang's `.ss` files (Tang, Qin and Liu 2015): user, product, rating and text, with two tabs between them.

The text is tokenised and its sentences end with `<sssss>`; these ends are kept, not found anew. Brackets that the
Penn Treebank tokeniser wrote as -lrb- are brackets again, as they are in every other text.
"""

import re
from collections.abc import Iterator

from emhrnn.corpus.readers.reading import Reading
from emhrnn.corpus.readers.streams import open_text
from emhrnn.corpus.record import Record, clean_text

SENTENCE_END = "<sssss>"
_BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}"}
_BRACKET = re.compile("|".join(_BRACKETS), re.IGNORECASE)


def read_tang(reading: Reading) -> Iterator[Record]:
    with open_text(reading.path, reading.meter) as lines:
        reading.taken.update(user="field 1", product="field 2", label="field 3", text="field 4")
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            fields = line.rstrip("\r\n").split("\t\t", 3)
            if len(fields) != 4:
                remedy = "give user, product, rating and text with two tabs between them"
                yield reading.fault(number, f" has {len(fields)} fields", remedy)
                continue
            user, product, label, text = fields
            text = _BRACKET.sub(lambda match: _BRACKETS[match[0].lower()], text)
            sentences = tuple(s for part in text.split(SENTENCE_END) if (s := clean_text(part)[0].strip()))
            values = {"text": text.replace(SENTENCE_END, " "), "label": label, "user": user, "product": product}
            yield reading.record(number, values, sentences)
