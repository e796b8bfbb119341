"""The embedded default corpus: reviews drawn from a seeded grammar of our own.

words.toml      opinion words by strength, names, places, made-up towns and brands
domains.toml    what each kind of review talks about
rules.toml      how a value is said, phrase by phrase
everyday.toml   plain sentences by stars, for the model `demo` alone
grammar.py      compiles and expands these files; phrases -> text and phrase ends
generator.py    opinions -> score -> stars; one review after the other, and a file of them
"""

from emhrnn.corpus.reviews.generator import Review, everyday_reviews, generate_reviews, write_reviews

__all__ = ["Review", "everyday_reviews", "generate_reviews", "write_reviews"]
