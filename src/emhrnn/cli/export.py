"""`emhrnn export`: a run as a web page or as ONNX."""

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from emhrnn.cli.options import Format, Json, LabelColumn, RunFolder, Split, TextColumn, flag, named, option

if TYPE_CHECKING:
    from emhrnn.export.web_folder import WebExport
    from emhrnn.training.data import Named


def export(
    run: RunFolder,
    web: Annotated[Path | None, option("Folder to write, for evidence: a page.", "FOLDER")] = None,
    onnx: Annotated[Path | None, option("Folder to write, for em-hrnn: ONNX.", "FOLDER")] = None,
    int8: Annotated[bool, flag("--int8", "Also write a model with 8-bit weights, 4x smaller.")] = False,
    check: Annotated[Path | None, option("Labelled data to measure the exports on.", "DATA")] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    format: Format = None,
    split: Split = None,
    overwrite: Annotated[bool, flag("--overwrite", "Replace FOLDER if it exists.")] = False,
    json: Json = False,
) -> None:
    """Write a run for use without this package: a web page (evidence) or ONNX (em-hrnn).

    \b
    Examples:
      emhrnn export run --web page          # then open page/index.html
      emhrnn export run --onnx exported
      emhrnn export run --onnx exported --int8 --check test.csv
      python exported/example.py 'The soup was not bad.'   # needs only onnxruntime and tokenizers

    --web writes FOLDER with index.html, style.css, page.js, emhrnn.js and model.js: a page that predicts and explains
    in a browser, without a server and without a request.

    --onnx writes FOLDER with model.onnx (from word ids to probabilities and weights), tokenizer.json, classes.json and
    example.py. The export is compared with the model on random documents before it is written. Needs the extra:
    pip install 'emhrnn[onnx]'
    """
    from emhrnn.cli.output import percent, print_json, say
    from emhrnn.errors import ConfigError

    if (web is None) == (onnx is None):
        raise ConfigError(f"{_exports_of(run)}; give one of --web FOLDER and --onnx FOLDER")
    if web is not None:
        if int8 or check is not None:
            raise ConfigError("--int8 and --check are for --onnx; leave them out with --web")
        page = export_page(run, web, overwrite=overwrite)
        if json:
            print_json(page.to_dict())
            return
        say(f"{web}/model.js   {page.bytes / 1e6:7.1f} MB, {page.phrases:,} phrases and {page.words:,} words")
        say(f"\nNext: open {web / 'index.html'} in a browser, or copy the folder to a web server.")
        return
    assert onnx is not None
    missing = [name for name in ("onnx", "onnxruntime", "tokenizers") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"export needs {', '.join(missing)}; install it with: pip install 'emhrnn[onnx]'")
    data = None if check is None else named(check, text_column, label_column, format, split)
    exported = export_run(run, onnx, int8=int8, check=data, overwrite=overwrite)
    if json:
        print_json(exported.to_dict())
        return
    difference = f"probabilities differ by at most {exported.difference:.0e}"
    say(f"{onnx}/model.onnx        {exported.bytes / 1e6:7.1f} MB, {difference}")
    if exported.int8_bytes is not None:
        say(f"{onnx}/model.int8.onnx   {exported.int8_bytes / 1e6:7.1f} MB")
    if exported.accuracy is not None:
        line = f"accuracy on {exported.documents:,} documents: {percent(exported.accuracy)}"
        if exported.int8_accuracy is not None:
            line += f", with 8 bits {percent(exported.int8_accuracy)}"
        say(line)
    say(f"\nNext: python {shlex.quote(str(onnx / 'example.py'))} 'A text of your own.'")


def _exports_of(folder: Path) -> str:
    """What the model of a run can be exported to."""
    from emhrnn.export import OPTIONS
    from emhrnn.training.run import model_of

    name = model_of(folder)
    return f"this run is {name}, which is exported with {OPTIONS.get(name, 'neither --web nor --onnx')}"


def export_page(folder: Path, out: Path, *, overwrite: bool = False) -> "WebExport":
    """Write the web page of a run.

    Raises:
        ConfigError: the model is no evidence model with learned segmentation.
        DataError: `out` is taken.
    """
    from emhrnn.export.web_folder import export_web
    from emhrnn.training.run import load_run

    return export_web(load_run(folder), out, overwrite=overwrite)


def export_run(
    folder: Path, out: Path, *, int8: bool = False, check: "Named | None" = None, overwrite: bool = False
) -> Any:
    """Write the ONNX folder of a run, and measure it on the labelled data `check`.

    Raises:
        ConfigError: the model cannot be exported.
        DataError: `out` is taken, or `check` cannot be used.
    """
    from emhrnn.export import unsupported
    from emhrnn.models.table import MODELS
    from emhrnn.training.data import labelled_corpus
    from emhrnn.training.run import load_run

    run = load_run(folder)
    export_onnx = MODELS[run.config.model.name].export_onnx
    if export_onnx is None:
        raise unsupported(run.config.model.name)
    if check is None:
        return export_onnx(run, out, int8=int8, overwrite=overwrite)
    with labelled_corpus(run, check, why="to compare with; leave --check out, or give labelled data") as corpus:
        return export_onnx(run, out, int8=int8, check=corpus, overwrite=overwrite)
