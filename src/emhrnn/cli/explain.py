"""`emhrnn explain`: which sentence, phrase and word decided."""

import sys
from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import Json, RunFolder, argument, flag, option


def explain(
    run: RunFolder,
    text: Annotated[str | None, argument("The text itself, or - to read it from stdin.")] = None,
    file: Annotated[Path | None, option("Read the text from this file.", "FILE")] = None,
    html: Annotated[Path | None, option("Write one self-contained page.", "FILE")] = None,
    user: Annotated[
        str | None, option("Author of the text, for models that use it.", "NAME", shown="the average user")
    ] = None,
    product: Annotated[
        str | None,
        option("Product that the text is about, for models that use it.", "NAME", shown="the average product"),
    ] = None,
    counterfactual: Annotated[
        bool, flag("--counterfactual", "Also find the fewest phrases whose removal changes the label.")
    ] = False,
    why_not: Annotated[str | None, option("Say why the text has its label and not this one.", "LABEL")] = None,
    label: Annotated[
        str | None, option("Show effects on this label instead of the predicted one (evidence).", "LABEL")
    ] = None,
    attention: Annotated[
        bool, flag("--attention", "Also show attention: where the model looked, not what decided.")
    ] = False,
    values: Annotated[
        str, option("effects: without each part; owen: fair shares that add up to the prediction.", "NAME", shown=True)
    ] = "effects",
    json: Json = False,
) -> None:
    """Show why a text gets its label: in the terminal, as JSON, or as an HTML page.

    \b
    Examples:
      emhrnn explain run 'The soup was not bad at all.'
      emhrnn explain run --file review.txt --html why.html
      cat review.txt | emhrnn explain run - --json
      emhrnn explain run --file review.txt --counterfactual
      emhrnn explain run 'The soup was not bad at all.' --why-not 5
      emhrnn explain run --file review.txt --values owen

    Phrases are set apart by //. A + (blue) supports the label, a - (orange) opposes it, in log-odds. A run of the
    evidence model shows its exact evidence: words add up to phrases, phrases to sentences, all to the shown sum. With
    other models, each phrase and sentence is left out in turn to see what changes. --values owen shares the log-odds of
    the label fairly among sentences, phrases and words instead: slower, sampled, with the error stated. The evidence of
    the evidence model already adds up in this way.
    """
    from emhrnn.cli.output import print_json
    from emhrnn.errors import ConfigError, DataError
    from emhrnn.files import write_text

    if (text is None) == (file is None):
        raise ConfigError("no text, or two of them; give one text: as an argument, with --file FILE, or - for stdin")
    if html is not None and (html.is_dir() or (file is not None and html.resolve() == file.resolve())):
        what = "is a folder" if html.is_dir() else "is the text itself"
        raise DataError(f"{html} {what}, so the page cannot be written there; give another file with --html")
    content = _read(text, file)

    from emhrnn.api import load

    model = load(run)
    if counterfactual and values != "effects":
        raise ConfigError("--counterfactual finds phrases by their effects; leave out --values")
    if sum((counterfactual, why_not is not None, label is not None)) > 1:
        raise ConfigError("--counterfactual, --why-not and --label are different questions; give one of them")
    if why_not is not None:
        answer = model.why_not(content, why_not, user=user, product=product)
        if html is not None:
            raise ConfigError("--why-not is answered in the terminal or as JSON; leave out --html")
        if json:
            print_json({**answer.explanation.to_dict(), "why_not": answer.to_dict()})
            return
        from emhrnn.explain.terminal import print_contrast

        print_contrast(answer)
        return
    if counterfactual:
        other = model.counterfactual(content, user=user, product=product)
        explanation = other.explanation
    else:
        other, explanation = None, model.explain(content, users=[user], products=[product], values=values, label=label)
    if html is not None:
        from emhrnn.explain.counterfactual import with_change
        from emhrnn.explain.html import html_page

        if label is None:
            batch = model.run.encoder.encode([content], users=[user], products=[product])
            explanation = with_change(model.run, batch, explanation)
        write_text(html, html_page(explanation, counterfactual=other, attention=attention))
    if json:
        told = {} if other is None else {"counterfactual": other.to_dict()}
        print_json({**explanation.to_dict(), **told})
    elif html is None:
        from emhrnn.explain.terminal import print_counterfactual, print_explanation

        print_explanation(explanation, attention=attention)
        if other is not None:
            print_counterfactual(other)
    else:
        from emhrnn.explain.escape import visible, without_breaks
        from emhrnn.explain.explanation import joined
        from emhrnn.explain.headline import headline_text

        print(f"{joined(explanation.predicted)}. {visible(without_breaks(headline_text(explanation)))}")
        print(f"For the whole explanation, see {html}")


def _read(text: str | None, file: Path | None) -> str:
    """The text given; the encoding of a file is detected, as that of data."""
    from emhrnn.corpus.readers.input import decode
    from emhrnn.errors import DataError

    if text == "-":
        return decode(sys.stdin.buffer.read())
    if text is not None:
        if len(text) < 256 and not text.isspace() and text and Path(text).is_file():
            raise DataError(f"{text} is a file; to explain what it says, give --file {text}")
        return text
    assert file is not None
    if not file.exists() or file.is_dir():  # a pipe will do: it is read once
        what = "is a folder" if file.is_dir() else "does not exist"
        raise DataError(f"{file} {what}; give a text file with --file, or the text itself")
    return decode(file.read_bytes())
