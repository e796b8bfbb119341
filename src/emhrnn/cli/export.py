"""`emhrnn export`: a run as a web page, or as a file of ONNX."""

from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import RunFolder, flag, option
from emhrnn.cli.output import Answer


def export(
    run: RunFolder,
    web: Annotated[Path | None, option("Folder to write: a page.", "FOLDER")] = None,
    onnx: Annotated[Path | None, option("File to write: a model for onnxruntime; it is replaced.", "FILE")] = None,
    overwrite: Annotated[bool, flag("--overwrite", "Replace FOLDER if it exists.")] = False,
) -> Answer:
    """Write a run of evidence as a web page or as ONNX, for use without this package.

    \b
    Examples:
      emhrnn export run --web page                    # then open page/index.html
      emhrnn export demo --web page --overwrite       # the model in the package
      emhrnn export run --onnx model.onnx             # for onnxruntime

    --web writes FOLDER with index.html, style.css, page.js, emhrnn.js and model.js: a page that predicts and explains
    in a browser, without a server and without a request. --onnx writes one file: word ids to probabilities and to what
    each word adds (docs/export.md). It takes the extra `onnx`.
    """
    from emhrnn.errors import ConfigError
    from emhrnn.export.onnx_graph import export_onnx
    from emhrnn.export.web_folder import export_web
    from emhrnn.training.run import load_run

    if web is None and onnx is None:
        raise ConfigError("nothing to write was named; give --web FOLDER or --onnx FILE")
    loaded = load_run(run)
    written = {}
    if web is not None:
        written["web"] = export_web(loaded, web, overwrite=overwrite)
    if onnx is not None:
        written["onnx"] = export_onnx(loaded, onnx)
    lines = [
        f"{told.path}   {told.bytes / 1e6:7.1f} MB, {told.phrases:,} phrases and {told.words:,} words"
        for told in written.values()
    ]
    if web is not None:
        lines.append(f"\nNext: open {web / 'index.html'} in a browser, or copy the folder to a web server.")
    return Answer({kind: told.to_dict() for kind, told in written.items()}, "\n".join(lines))
