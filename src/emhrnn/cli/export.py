"""`emhrnn export`: a run as ONNX."""

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from emhrnn.cli.options import Format, Json, LabelColumn, RunFolder, Split, TextColumn


def export(
    run: RunFolder,
    onnx: Annotated[
        Path, typer.Option("--onnx", help="Folder to write, for onnxruntime.", metavar="FOLDER", show_default=False)
    ],
    int8: Annotated[bool, typer.Option("--int8", help="Also a model of 8-bit weights, a quarter of the size.")] = False,
    check: Annotated[
        Path | None,
        typer.Option("--check", help="Labelled data to measure both models on.", metavar="DATA", show_default=False),
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    format: Format = None,
    split: Split = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    json: Json = False,
) -> None:
    """Write a run as ONNX: the whole network from word ids to probabilities and weights, a tokenizer, and an example.

    \b
    Examples:
      emhrnn export run --onnx exported
      emhrnn export run --onnx exported --int8 --check test.csv
      python exported/example.py 'The soup was not bad at all.'     needs only onnxruntime and tokenizers

    The file is compared with the model on random documents before it is handed out. Needs the extra: onnx.
    """
    from emhrnn.cli.printing import percent, print_json, say
    from emhrnn.corpus import Columns
    from emhrnn.errors import ConfigError
    from emhrnn.training.data import Named

    missing = [name for name in ("onnx", "onnxruntime", "tokenizers") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"export needs {', '.join(missing)}; install it with: pip install 'emhrnn[onnx]'")
    from emhrnn.products.exporting import export_run

    data = None
    if check is not None:
        columns = Columns(text=text_column, label=label_column)
        data = Named(path=check, format=format, columns=columns, split=split)
    exported = export_run(run, onnx, int8=int8, check=data, overwrite=overwrite)
    if json:
        print_json(exported.to_dict())
        return
    say(f"{onnx}/model.onnx        {exported.bytes / 1e6:7.1f} MB, as the model to {exported.difference:.0e}")
    if exported.int8_bytes is not None:
        say(f"{onnx}/model.int8.onnx   {exported.int8_bytes / 1e6:7.1f} MB")
    if exported.accuracy is not None:
        line = f"accuracy on {exported.documents:,} documents: {percent(exported.accuracy)}"
        if exported.int8_accuracy is not None:
            line += f", with 8 bits {percent(exported.int8_accuracy)}"
        say(line)
    say(f"\nNext: python {shlex.quote(str(onnx / 'example.py'))} 'A text of your own.'")
