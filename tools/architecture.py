"""Write docs/architecture.md from the source tree: the way of the data with file names, and who imports whom.

python -m tools.architecture            write the file
python -m tools.architecture --check    exit with code 1 if the file in docs/ is another
"""

import ast
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "emhrnn"
PAGE = ROOT / "docs" / "architecture.md"
BASE = {"compiler", "cores", "errors", "files", "shapes", "version"}  # modules that many folders import
Imports = dict[str, set[str]]

# What a text becomes, in order: a name, the folder that defines it, and what it is.
WAY = (
    ("Document", "text", "sentences, words and character offsets of one text"),
    ("TextEncoder", "corpus", "the one way from texts to word ids: caps, empty texts, unknown words"),
    ("Batch", "corpus", "word ids of many documents: flat arrays with offsets"),
    ("Evidence", "models", "a model: one file each; this one is the default"),
    ("Output", "models", "logits, phrase ends, weights of words, phrases and sentences"),
    ("Explanation", "explain", "a tree of sentences, phrases and words with their effects"),
    ("html_page", "explain", "a self-contained page; print_explanation writes to a terminal"),
)
# Where people enter, and the functions and classes that they pass on the way.
DOORS = (
    ("a file to train on", "cli:train", "api.py:train", "corpus:prepare", "training:fit", "training:steps"),
    ("a text in Python", "api.py:load", "api.py:Model", "explain:explain_texts"),
    ("a table of texts in scikit-learn", "estimator.py:DocumentClassifier", "training:fit"),
    ("files to classify", "cli:predict", "scoring:score", "scoring:Scorer"),
    ("a request to the server", "cli:serve", "serve:serve", "serve:application", "serve:ServedRun"),
)

# What a person looks for, and where it is.
TREE = """\
src/emhrnn/
  text/          raw string -> Document (sentences, words, character offsets); vocabulary; pretrained vectors
  corpus/        csv | jsonl | parquet | folders -> memory-mapped Arrow -> ragged Batch; encode.py: new texts -> Batch
    readers/     files of every format as records
    reviews/     the embedded corpus: a seeded grammar that knows its phrase boundaries
  layers/        ragged LSTM and GRU, phrase candidates, semi-Markov recursion: pure torch, and
    native/      the same in C++, compiled on first use; kernels.cpp lists its parts
  models/        what people deploy, one file per system; table.py lists all, those of the paper too
  evaluation/    predictions, scores, calibration
  training/      how a model learns
    train.py         from data to a run folder: prepare, describe, fit
    loop.py          for each batch: loss of the labels, gradient, step
    run.py           a run folder: save and load; pack.py: as one file
    folder.py, resume.py            locks and checkpoints; resume after a crash, bit for bit
    progress.py      history, live view, TensorBoard
    distributed.py   several processes on one model (torchrun)
    validation.py, card.py          scores, folds and calibration; the model card
  explain/       Explanation tree -> terminal, JSON, self-contained HTML
  api.py         load and train; estimator.py: the same for scikit-learn
  scoring/ serve/ export/ tuning/ demo/ cli/    files, the viewer, web page, search, demo, commands
  audit/         rows of labelled data that are probably wrong; csv, page, Label Studio and Prodigy
  drift.py       words and labels of new documents beside those of training
  paper/         everything that exists because of the paper; nothing above imports it
    models/      em-hrnn, hn-att and the other baselines, by kind; rows.py has their settings
    em/          blocks -> configurations -> log p(y | Z) of all at once -> Posterior -> M-steps
      plan.py          which phrases, sentences and documents are distinct: integers only
      likelihood.py    a few large matrix products over that plan
      steps.py         E-steps by name (exact, blocks, local) and M-steps
      objective.py     one step of EM on a batch
      semi_markov.py   the exact posterior over all segmentations
    comparison/  systems on sets of data under one protocol, with significance
    simulation/  table 1; table2/ and analysis/: tables 2 and 3, figures 4-5; explanations/, phrases.py
    evidence.py  learned against fixed segmentations, from the records in results/
  compiler.py    compiles the C++ files of text, layers and paper/em once per machine, without torch
tests/           mirrors the package; oracles/ holds the slow, obvious twins
benchmarks/      speed as ratios within one run: text, lstm, train_step, estep, evidence,
                 scoring, explain, distributed, serve; estep_quality: what each E-step finds;
                 web: how far the exported page is from Python
results/         tables and figures, each naming the command that made it
"""


def definitions() -> dict[tuple[str, str], str]:
    """(folder or top module, name) of every class and function -> its file, relative to the package."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        path = file.relative_to(PACKAGE)
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                found[path.parts[0], node.name] = path.as_posix()
    return found


@cache
def imports() -> Imports:
    """The folders and top modules that each of them imports, at any level of its files."""
    found: Imports = defaultdict(set)
    for file in sorted(PACKAGE.rglob("*.py")):
        part = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part.startswith("__"):
            continue
        found[part] |= set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "emhrnn":
                names = [node.module.split(".")[1]] if "." in node.module else [alias.name for alias in node.names]
                found[part] |= {name for name in names if is_part(name)}
    return {part: uses - {part} for part, uses in found.items()}


def is_part(name: str) -> bool:
    """Whether it is a folder or a module at the top of the package."""
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()


def reduced(graph: Imports) -> Imports:
    """Without the imports that follow from others: a -> c, where a -> b -> c."""

    def reached(part: str) -> set[str]:
        return graph[part] | {far for near in graph[part] for far in reached(near)}

    return {part: uses - {far for near in uses for far in reached(near)} for part, uses in graph.items()}


def way() -> str:
    """The way of the data as text, with the file of each stage."""
    where = definitions()
    lines = ["text"]
    for name, folder, what in WAY:
        lines += ["  |", "  v", f"{name:<12} {where[folder, name]:<26} {what}"]
    return "\n".join(lines)


def doors() -> str:
    """A row for each place where people enter."""
    where = definitions()

    def shown(step: str) -> str:
        folder, _, name = step.partition(":")
        return f"`{name}` ({where[folder, name]})"

    rows = [f"| {what} | {' -> '.join(map(shown, steps))} |" for what, *steps in DOORS]
    return "\n".join(["| you have | it passes |", "|---|---|", *rows])


def picture(graph: Imports) -> str:
    """The imports as a Mermaid flowchart, without those that follow from others."""
    parts = {part: uses - BASE for part, uses in graph.items() if part not in BASE}
    edges = [f"  {part} --> {use}" for part, uses in reduced(parts).items() for use in sorted(uses)]
    return "\n".join(["flowchart TD", *edges])


def table(graph: Imports) -> str:
    """All direct imports, those that import most first."""
    rows = [f"| {part} | {', '.join(sorted(graph[part])) or '-'} |" for part in order(graph)]
    return "\n".join(["| part | imports |", "|---|---|", *rows])


def order(graph: Imports) -> list[str]:
    """Every part before those that it imports."""
    done: list[str] = []

    def add(part: str) -> None:
        if part not in done:
            for use in sorted(graph[part]):
                add(use)
            done.append(part)

    for part in sorted(graph):
        add(part)
    return done[::-1]


def page() -> str:
    """The whole file."""
    graph = imports()
    return f"""# Architecture

`make architecture` writes this file from the source tree; a test checks that it is up to date. Where new code
goes: `CONTRIBUTING.md`.

## What each folder holds

A folder imports only folders above it, and `compiler.py` (import-linter checks the exact order in `pyproject.toml`).

```
{TREE}```

## The way of the data

File names are relative to `src/emhrnn/`. Training, prediction, explanation, scoring and the server share this way.

```
{way()}
```

{doors()}

## Who imports whom

Imports go one way; import-linter checks the order (`pyproject.toml`). An arrow is an import; one that follows from two
others is left out, and so are {", ".join(sorted(BASE))}. `cli` mounts the commands of `paper` by name.

```mermaid
{picture(graph)}
```

{table(graph)}
"""


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE} is out of date; run: make architecture")
    PAGE.write_text(page(), encoding="utf-8")
