"""What a request may cost. Every limit has an answer of its own: 408, 413, 422 or 503, with a body that says which."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    body_bytes: int = 2 << 20  # 413
    upload_bytes: int = 64 << 20  # 413: a file for the corpus page
    texts: int = 256  # 422: per request
    words: int = 20_000  # 422: per document, as blanks separate them
    seconds: float = 30.0  # 503: until there is an answer
    body_seconds: float = 10.0  # 408: until the request has arrived
    waiting: int = 512  # 503: requests that wait for the model
    connections: int = 1024  # 503
    rows: int = 20_000  # of a file that the corpus page shows
    jobs: int = 8  # files that the corpus page remembers


class RefusedError(Exception):
    """A request that is answered with its status and one sentence."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


def check_texts(texts: list[str], limits: Limits) -> None:
    if not texts:
        raise RefusedError(422, "no text was given; give one text or a list of texts")
    if len(texts) > limits.texts:
        raise RefusedError(422, f"{len(texts)} texts in one request; give at most {limits.texts}")
    for number, text in enumerate(texts, start=1):
        words = len(text.split())
        if words > limits.words:
            raise RefusedError(422, f"text {number} has {words:,} words; give at most {limits.words:,}")
        if not words:
            raise RefusedError(422, f"text {number} has no words; give a text with at least one word")
