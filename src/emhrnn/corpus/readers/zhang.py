r"""Zhang's headerless csv (Zhang, Zhao and LeCun 2015): "class","title","text", or any number of text fields.

Line ends inside a field are written as a backslash and an n. The text fields become one text, each its own paragraph.
"""

import re
from collections.abc import Iterator

from emhrnn.corpus.readers.delimited import rows_of
from emhrnn.corpus.readers.reading import Reading
from emhrnn.corpus.readers.streams import open_text
from emhrnn.corpus.record import Record

_ESCAPE = re.compile(r'\\([n"\\])')


def read_zhang(reading: Reading) -> Iterator[Record]:
    with open_text(reading.path, reading.meter, newline="") as lines:
        reading.taken.update(text="fields 2 and on", label="field 1")
        number = 0
        for row in rows_of(lines, reading, ","):
            if not row:
                continue
            number += 1
            if isinstance(row, str):
                yield Record("", None, reading.where(number), fault=row)
                continue
            if len(row) < 2 or not row[0].strip().lstrip("-").isdecimal():
                yield reading.fault(number, ' is not "class number","text"...', "give the format if it has a header")
                continue
            fields = [_ESCAPE.sub(_unescape, field) for field in row[1:]]
            text = "\n\n".join(field for field in fields if field.strip())
            yield reading.record(number, {"text": text, "label": row[0]})


def _unescape(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]
