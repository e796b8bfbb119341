"""The embedded default corpus: reviews drawn from a seeded grammar of our own.

words.toml      opinion words by strength, names, places, made-up towns and brands
domains.toml    what each kind of review talks about
rules.toml      how a value is said, phrase by phrase
grammar.py      compiles and expands the three files
stars.py        opinions -> score -> stars
generator.py    one review after the other
surface.py      phrases -> text and phrase ends
review.py       the result, and a file of results
"""

from emhrnn.corpus.reviews.generator import generate_reviews
from emhrnn.corpus.reviews.review import Review, write_reviews

__all__ = ["Review", "generate_reviews", "write_reviews"]
