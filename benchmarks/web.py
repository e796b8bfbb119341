"""How far the page of `emhrnn export --web` is from Python, in Chromium.

    python -m benchmarks.web --run RUN --data FILE.jsonl [--texts 1000]

Texts spread over FILE are read by both. Differences are of probabilities and of the log-odds of sentences.

    same_sentences         share of texts that both split into the same sentences
    given_sentences        largest difference of a probability where both are given the sentences of Python
    given_effects          likewise, of the log-odds of a sentence
    largest, mean          difference of a probability where each splits by itself
    other_label            share of texts with another label
    milliseconds           of the page, for a text
"""

import argparse
import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tests.explain.browser import chromium

from emhrnn.api import load
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.explanation import Explanation
from emhrnn.export.web_folder import export_web
from emhrnn.text import split_sentences

READ = """texts => texts.map((text) => {
  const { probabilities, sentences } = emhrnn.read(text);
  return { probabilities, sentences: sentences.map(({ text, effect }) => ({ text, effect })) };
})"""
TIMED = "texts => { const start = performance.now(); texts.forEach(emhrnn.read); return performance.now() - start; }"


def figures(run: Path, texts: list[str]) -> dict[str, float]:
    """By name, as above."""
    model = load(run)
    pieces = [
        tuple(piece for piece in split_sentences(text, model.run.text.language) if piece.strip()) for text in texts
    ]
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        export_web(model.run, Path(folder) / "page")
        page = browser.new_page()
        page.goto((Path(folder) / "page" / "index.html").as_uri())
        alone, given = page.evaluate(READ, texts), page.evaluate(READ, pieces)
        milliseconds = page.evaluate(TIMED, texts) / len(texts)
    expected, of_pieces = explain_texts(model.run, texts), explain_texts(model.run, pieces)
    differences = np.array([difference(*pair) for pair in zip(alone, expected, strict=True)])
    labels = [
        np.argmax(one["probabilities"]) != two.probabilities.argmax() for one, two in zip(alone, expected, strict=True)
    ]
    effects = [
        np.abs(np.array([sentence["effect"] for sentence in one["sentences"]]) - two.effects.sentences).max()
        for one, two in zip(given, of_pieces, strict=True)
        if two.effects is not None
    ]
    same = [
        [sentence["text"] for sentence in one["sentences"]] == [sentence.text for sentence in two.sentences]
        for one, two in zip(alone, expected, strict=True)
    ]
    return {
        "same_sentences": float(np.mean(same)),
        "given_sentences": max(difference(*pair) for pair in zip(given, of_pieces, strict=True)),
        "given_effects": float(max(effects)),
        "largest": float(differences.max()),
        "mean": float(differences.mean()),
        "other_label": float(np.mean(labels)),
        "milliseconds": milliseconds,
    }


def difference(given: dict[str, Any], expected: Explanation) -> float:
    """The largest one of a probability."""
    return float(np.abs(np.array(given["probabilities"]) - expected.probabilities).max())


def spread(data: Path, count: int) -> list[str]:
    """About so many texts with words, from all over the file."""
    with gzip.open(data, "rt", encoding="utf-8") if data.suffix == ".gz" else data.open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    return [text for text in texts[:: max(len(texts) // count, 1)] if text.strip()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=1000)
    options = parser.parse_args()
    for name, value in figures(options.run, spread(options.data, options.texts)).items():
        print(f"{name:16} {value:.6g}")


if __name__ == "__main__":
    main()
