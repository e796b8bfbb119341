"""`emhrnn export`: a run as a web page."""

from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import Json, RunFolder, flag, option


def export(
    run: RunFolder,
    web: Annotated[Path | None, option("Folder to write: a page.", "FOLDER")] = None,
    overwrite: Annotated[bool, flag("--overwrite", "Replace FOLDER if it exists.")] = False,
    json: Json = False,
) -> None:
    """Write a run of evidence as a web page, for use without this package.

    \b
    Examples:
      emhrnn export run --web page                    # then open page/index.html
      emhrnn export demo --web page --overwrite       # the model in the package

    --web writes FOLDER with index.html, style.css, page.js, emhrnn.js and model.js: a page that predicts and explains
    in a browser, without a server and without a request.
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.errors import ConfigError
    from emhrnn.export.web_folder import export_web
    from emhrnn.training.run import load_run

    if web is None:
        raise ConfigError("nothing to write was named; give --web FOLDER")
    page = export_web(load_run(run), web, overwrite=overwrite)
    if json:
        print_json(page.to_dict())
        return
    say(f"{web}/model.js   {page.bytes / 1e6:7.1f} MB, {page.phrases:,} phrases and {page.words:,} words")
    say(f"\nNext: open {web / 'index.html'} in a browser, or copy the folder to a web server.")
