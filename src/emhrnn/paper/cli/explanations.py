"""`emhrnn paper faithfulness` and `rationales`: are explanations true of the model, and do people agree with them?"""

from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import Data, Format, RunFolder, Split, TextColumn, argument, option
from emhrnn.cli.output import Answer, report_at

Other = Annotated[list[Path] | None, option("Another run; may be repeated.", "RUN")]
Method = Annotated[list[str] | None, option("Only this method; may be repeated.", "NAME")]
Out = Annotated[Path, option("Folder to write to.", "FOLDER", shown=True)]
Seed = Annotated[int, option("Seed of intervals, draws and random scores.", "N", shown=True, min=0)]


def faithfulness(
    run: RunFolder,
    data: Data,
    other: Other = None,
    method: Method = None,
    out: Out = Path("runs/faithfulness"),
    documents: Annotated[int, option("Number of documents to draw.", "N", shown=True)] = 500,
    seed: Seed = 0,
    figure: Annotated[bool, option("Draw the curves; needs emhrnn[plots].", shown=True)] = True,
    text_column: TextColumn = None,
    format: Format = None,
    split: Split = None,
) -> Answer:
    """Remove what the explanations call important, and see how far the predicted probability falls.

    \b
    Methods, where the model allows them, by words, phrases and sentences (docs/trust.md):
      evidence              exact, of models whose phrases add up: what `emhrnn explain` shows
      removal               every phrase and sentence left out, one by one; words of em-hrnn and hn-att, too
      first-order           effects from one backward pass
      attention             weights of the model
      integrated gradients  of the word vectors
      weights               of n-grams (tfidf-lr, nb-lr)
      owen, lime, shap      only by --method, for RUN alone: hundreds of predictions; shap needs emhrnn[shap]
      random                as a floor
    \b
    Example:
      emhrnn paper faithfulness run test.csv --out results

    Writes faithfulness.md, .json and .svg.
    """
    from emhrnn.corpus import Columns
    from emhrnn.paper.explanations.faithfulness import measure_faithfulness
    from emhrnn.paper.explanations.table import USUAL, section_markdown
    from emhrnn.training.data import Named

    section = measure_faithfulness(
        [run, *(other or [])],
        Named(path=data, format=format, columns=Columns(text=text_column, labelled=False), split=split),
        out,
        methods=method or USUAL,
        documents=documents,
        seed=seed,
        figure=figure,
    )
    return Answer(section, f"{section_markdown(data.name, section)}\n{report_at(out, 'faithfulness')}")


def rationales(
    run: RunFolder,
    data: Annotated[Path, argument("A file of human evidence, as published.", "DATA")],
    other: Other = None,
    method: Method = None,
    part: Annotated[str | None, option("Split of DATA.", "NAME", shown="validation or test")] = None,
    positive: Annotated[str | None, option("The run's positive class.", "NAME", shown="guessed")] = None,
    documents: Annotated[int | None, option("Number of documents to draw.", "N", shown="all")] = None,
    out: Out = Path("runs/rationales"),
    section: Annotated[str | None, option("Title in the report.", "NAME", shown="the set")] = None,
    seed: Seed = 0,
) -> Answer:
    """Compare explanations with evidence that people marked: agreement with intervals, and cost.

    \b
    DATA is one of:
      ERASER movies            tokens that are evidence: AUPRC, token F1, IOU F1
      SST trees                sentiment of every phrase: sign and rank of its effect
      edited IMDB pairs        is a word that the edit replaced among the best phrases? does the label flip?
      fine-grained sentences   sign of the effect of every sentence
    \b
    Methods are those of `emhrnn paper faithfulness`; and alone: rated parts read as texts of their own.
    Example:
      emhrnn paper rationales run eraser_movies.jsonl.gz --other hn --out results

    Writes rationales.md and rationales.json; sections with other titles that are there stay.
    """
    from emhrnn.paper.explanations.methods import ALONE
    from emhrnn.paper.explanations.rationales import compare_rationales
    from emhrnn.paper.explanations.table import USUAL, section_markdown

    made = compare_rationales(
        [run, *(other or [])],
        data,
        out,
        part=part,
        positive=positive,
        methods=method or (*USUAL, ALONE),
        documents=documents,
        seed=seed,
        section=section,
    )
    return Answer(made, f"{section_markdown(data.name, made)}\n{report_at(out, 'rationales')}")


def units(
    run: RunFolder,
    data: Annotated[Path, argument("ERASER movies, as published.", "DATA")],
    out: Out = Path("runs/units"),
    seed: Seed = 0,
) -> Answer:
    """Compare phrases, fixed runs, words and sentences as units of explanations, at equal numbers of words shown.

    \b
    Example:
      emhrnn paper units run eraser_movies.jsonl.gz --out results

    RUN is of the model evidence. Writes units.md and units.json.
    """
    from emhrnn.paper.explanations.units import compare_units, units_markdown

    made = compare_units(run, data, out, seed=seed)
    return Answer(made, units_markdown(made))


def documents(
    data: Annotated[Path, argument("Evidence that people marked; or with --without, data in any format.", "DATA")],
    out: Annotated[Path, option("File to write, as jsonl.", "FILE")],
    without: Annotated[Path | None, option("Leave out texts that are in this evidence.", "EVIDENCE")] = None,
    part: Annotated[str, option("Split of DATA.", "NAME", shown=True)] = "train",
    marked: Annotated[
        int | None, option("ERASER: keep the spans of so many documents.", "N", shown="all", min=0)
    ] = None,
) -> None:
    """Write training data for `emhrnn paper rationales`.

    \b
    Examples:
      emhrnn paper documents sst_trees_ptb.zip --part train --out sst.jsonl
      emhrnn paper documents imdb_train.jsonl.gz --without imdb_counterfactual_cad.zip --out imdb.jsonl
      emhrnn paper documents eraser_movies.jsonl.gz --out eraser.jsonl --marked 200

    SST trees become a document for each part that people do not find neutral, words and sentences included, labelled
    pos or neg. ERASER movies get a column `spans` of characters [start, end). With --without, the rows of DATA are
    copied, except those whose text is in any split of EVIDENCE.
    """
    from emhrnn.cli.output import say
    from emhrnn.paper.explanations.human import write_marked, write_without

    count = write_marked(data, part, out, marked) if without is None else write_without(data, without, out)
    say(f"{count:,} documents are in {out}.")
