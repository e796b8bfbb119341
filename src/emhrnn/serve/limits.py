"""What a request may cost. Every limit has an answer of its own: 408, 413, 422 or 503, with a body that says which."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from emhrnn.corpus.encode import NO_WORDS, has_words
from emhrnn.corpus.record import clean_text
from emhrnn.text import split_sentences
from emhrnn.text.words import token_pattern

_WORD = re.compile(token_pattern())


@dataclass(frozen=True)
class ServerLimits:
    """Upper bounds, each with the status of the answer beyond it."""

    head_bytes: int = 64 << 10  # 431: request line and headers
    body_bytes: int = 2 << 20  # 413
    upload_bytes: int = 64 << 20  # 413: a file for the corpus page
    texts: int = 256  # 422: per request
    words: int = 20_000  # 422: per document, as the model reads it: punctuation counts as words
    explained_words: int = 50_000  # 422: per request to explain; the answer has about 270 bytes for each
    seconds: float = 30.0  # 503: until there is an answer
    body_seconds: float = 10.0  # 408: until the body of a request has arrived; its head has as long, or is cut off
    taken_bytes: int = 64 << 10  # of an answer in as long, unless that is all; a client that takes less is cut off
    waiting: int = 512  # 503: requests that wait for the model
    connections: int = 1024  # 503
    wrong_tokens: int = 10  # 429: per minute and address
    rows: int = 20_000  # of a file that the corpus page shows
    row_characters: int = 1 << 20  # of the text of such a row; longer ones are left out, and counted
    unpacked_bytes: int = 256 << 20  # of an uploaded file: what it is when nothing is compressed
    feedback_bytes: int = 256 << 20  # 507: of the file of corrections
    jobs: int = 8  # files that the corpus page remembers


CODES = {
    400: "bad_request", 401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    408: "request_timeout", 413: "too_large", 422: "invalid", 429: "too_many_tokens", 431: "head_too_large",
    500: "fault", 503: "busy", 507: "feedback_full",
}  # fmt: skip


class RefusedError(Exception):
    """A request that is answered with its status, a code for programs and one sentence for people. `close`: then the
    connection is closed."""

    def __init__(self, status: int, reason: str, *, code: str = "", close: bool = False) -> None:
        super().__init__(reason)
        self.status, self.reason, self.close = status, reason, close
        self.code = code or CODES.get(status, "error")

    def body(self, request_id: str | None) -> dict[str, str | None]:
        """As JSON. Without an id where the request was cut off before it was read."""
        return {"error": self.reason, "code": self.code, "request_id": request_id}


def check_texts(texts: Sequence[str], limits: ServerLimits) -> None:
    """Raise a RefusedError (422) for no text, too many texts, a text without words, or one with too many."""
    if not texts:
        raise RefusedError(422, "no text was given; give one text or a list of texts", code="no_text")
    if len(texts) > limits.texts:
        raise RefusedError(
            422, f"{len(texts)} texts in one request; give at most {limits.texts}", code="too_many_texts"
        )
    for number, text in enumerate(texts, start=1):
        if not has_words(text):
            raise RefusedError(422, f"text {number} {NO_WORDS}", code="no_words")
        if _more_words([text], limits.words):
            raise RefusedError(
                422,
                f"text {number}, of {len(text):,} characters, has more than {limits.words:,} words (punctuation counts "
                f"as words); give at most {limits.words:,}, or split it into several texts",
                code="too_many_words",
            )


def check_explained(texts: Sequence[str], limits: ServerLimits) -> None:
    """As `check_texts`, and together they are not too many words for one answer."""
    check_texts(texts, limits)
    most = limits.explained_words
    if _more_words(texts, most):
        raise RefusedError(
            422,
            f"{len(texts)} texts with more than {most:,} words together (punctuation counts as words); explain at most "
            f"{most:,} in one request, and send the others in the next",
            code="too_many_words",
        )


async def check_aside(
    check: Callable[[Sequence[str], ServerLimits], None], texts: Sequence[str], limits: ServerLimits
) -> None:
    """In a thread where words may have to be counted: for the largest request that takes seconds."""
    if sum(map(len, texts)) > limits.words:
        await asyncio.to_thread(check, texts, limits)
    else:
        check(texts, limits)


def _more_words(texts: Sequence[str], limit: int) -> bool:
    """Whether there are more, as the model reads them: without a blank, `a,a` is three. Counts no further than that,
    and not at all where there are no more characters than words allowed."""
    if sum(map(len, texts)) <= limit:
        return False
    sentences = (sentence for text in texts for sentence in split_sentences(clean_text(text)[0]))
    words = (word for sentence in sentences for word in _WORD.finditer(sentence))
    return next(islice(words, limit, None), None) is not None
