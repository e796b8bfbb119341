"""`emhrnn info`: what a folder or a file holds."""

from pathlib import Path
from typing import Annotated, Any

import typer

from emhrnn.cli.options import Json, LabelColumn, TextColumn


def info(
    path: Annotated[
        Path,
        typer.Argument(help="A run folder, a prepared corpus, or data.", metavar="PATH", show_default=False),
    ],
    card: Annotated[bool, typer.Option("--card", help="Print the model card of a run, as Markdown.")] = False,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    json: Json = False,
) -> None:
    """Describe a run, a prepared corpus, or data: its format, its columns and its first text.

    \b
    Examples:
      emhrnn info run
      emhrnn info run --card > card.md
      emhrnn info reviews.csv
      emhrnn info letters.csv --text-column body      # what would `train` read?
    """
    from emhrnn.cli.printing import print_json, say
    from emhrnn.corpus import Columns, is_corpus
    from emhrnn.errors import DataError
    from emhrnn.products.describing import check_whole, file_facts, file_text, run_facts, run_text

    facts: dict[str, Any]
    if not path.exists():
        raise DataError(f"{path} does not exist; give a run folder, a prepared corpus or data")
    is_data = not is_corpus(path) and not (path / "config.json").is_file()
    if not is_data and (text_column or label_column):
        raise DataError(f"{path} is no data with columns to choose; leave --text-column and --label-column out")
    if card and (not path.is_dir() or is_corpus(path)):
        raise DataError(f"{path} is data, and only a run has a model card; leave --card out, or give a run folder")
    if card:
        from emhrnn.training.card import card_of, markdown

        of_run = card_of(path)
        check_whole(path)
        facts, text = {"kind": "card", **of_run.to_dict()}, markdown(of_run).rstrip()
    elif is_corpus(path):
        from emhrnn.corpus import Corpus

        report = Corpus.open(path).report
        facts, text = {"kind": "corpus", **report.to_dict()}, str(report)
    elif not is_data:
        described = run_facts(path)
        check_whole(path)
        facts, text = {"kind": "run", **described}, run_text(path, described)
    else:
        described = file_facts(path, Columns(text=text_column, label=label_column))
        facts, text = {"kind": "data", **described}, file_text(described)
    if json:
        print_json(facts)
    else:
        say(text)
