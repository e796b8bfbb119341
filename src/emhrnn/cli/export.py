"""`emhrnn export`: a run as a web page or as ONNX."""

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from emhrnn.cli.options import Json, RunFolder, flag, option

if TYPE_CHECKING:
    from emhrnn.export.web_folder import WebExport


def export(
    run: RunFolder,
    web: Annotated[Path | None, option("Folder to write, for evidence: a page.", "FOLDER")] = None,
    onnx: Annotated[Path | None, option("Folder to write, for em-hrnn: ONNX.", "FOLDER")] = None,
    overwrite: Annotated[bool, flag("--overwrite", "Replace FOLDER if it exists.")] = False,
    json: Json = False,
) -> None:
    """Write a run for use without this package: a web page (evidence) or ONNX (em-hrnn).

    \b
    Examples:
      emhrnn export run --web page          # then open page/index.html
      emhrnn export run --onnx exported
      python exported/example.py 'The soup was not bad.'   # needs only onnxruntime and tokenizers

    --web writes FOLDER with index.html, style.css, page.js, emhrnn.js and model.js: a page that predicts and explains
    in a browser, without a server and without a request.

    --onnx writes FOLDER with model.onnx (from word ids to probabilities and weights), tokenizer.json, classes.json and
    example.py. The export is compared with the model on random documents before it is written. Needs the extra:
    pip install 'emhrnn[onnx]'
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.errors import ConfigError

    if (web is None) == (onnx is None):
        raise ConfigError(f"{_exports_of(run)}; give one of --web FOLDER and --onnx FOLDER")
    if web is not None:
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
    exported = export_run(run, onnx, overwrite=overwrite)
    if json:
        print_json(exported.to_dict())
        return
    difference = f"probabilities differ by at most {exported.difference:.0e}"
    say(f"{onnx}/model.onnx   {exported.bytes / 1e6:7.1f} MB, {difference}")
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


def export_run(folder: Path, out: Path, *, overwrite: bool = False) -> Any:
    """Write the ONNX folder of a run.

    Raises:
        ConfigError: the model cannot be exported.
        DataError: `out` is taken.
    """
    from emhrnn.export import unsupported
    from emhrnn.models.table import MODELS
    from emhrnn.training.run import load_run

    run = load_run(folder)
    export_onnx = MODELS[run.config.model.name].export_onnx
    if export_onnx is None:
        raise unsupported(run.config.model.name)
    return export_onnx(run, out, overwrite=overwrite)
