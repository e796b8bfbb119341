"""`emhrnn serve`: the viewer and its REST API."""

from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import argument, option


def serve(
    runs: Annotated[list[Path], argument("One run, or two to compare; demo: the model in the package.", "RUN [RUN2]")],
    host: Annotated[
        str, option("Address to listen at. Other addresses than this machine need a token.", shown=True)
    ] = "127.0.0.1",
    port: Annotated[int, option("Port to listen at; 0: any free one.", shown=True, min=0, max=65535)] = 8000,
    token: Annotated[str | None, option("Clients must send this token.", "T", envvar="EMHRNN_TOKEN")] = None,
    data: Annotated[Path | None, option("Folder whose files the corpus page may open.", "FOLDER")] = None,
) -> None:
    """Serve the viewer and its REST API: paste a document, see its label and why.

    \b
    Examples:
      emhrnn serve run                         # then open http://127.0.0.1:8000
      emhrnn serve run other-run               # two runs side by side
      emhrnn serve run --data reviews/         # browse the files of a folder
      emhrnn serve run --host 0.0.0.0 --token "$(openssl rand -hex 16)"

    Writes beside the run: RUN.feedback.jsonl, what people correct, and RUN.jobs, predictions of the Corpus page
    without the documents. For demo, both are in the current folder. Uploads are in a temporary folder until they are
    read. Loads nothing from the network, and sends no document to it. Ctrl-C finishes the open requests, then stops.
    The extra emhrnn[serve] adds a faster event loop.
    """
    from emhrnn.cli.output import say
    from emhrnn.errors import ConfigError

    try:
        import fastapi  # noqa: F401
        import jinja2  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"the viewer needs {error.name}; install it with: pip install emhrnn") from None
    from emhrnn.serve.app import serve as run_server
    from emhrnn.training.pack import located

    run_server([located(run) for run in runs], host=host, port=port, token=token, data=data, say=say)
