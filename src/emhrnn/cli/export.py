"""`emhrnn export`: a run as ONNX, or as a program of torch."""

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from emhrnn.cli.options import Format, Json, LabelColumn, RunFolder, Split, TextColumn


def export(
    run: RunFolder,
    onnx: Annotated[
        Path | None,
        typer.Option("--onnx", help="Folder to write, for onnxruntime.", metavar="FOLDER", show_default=False),
    ] = None,
    torch: Annotated[
        Path | None,
        typer.Option("--torch", help="File to write, for torch.export: .pt2.", metavar="FILE", show_default=False),
    ] = None,
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
    """Write a run as ONNX: the whole network from word ids to probabilities and weights, a tokenizer, and an example;
    or the network as a program of torch.

    \b
    Examples:
      emhrnn export run --onnx exported
      emhrnn export run --onnx exported --int8 --check test.csv
      python exported/example.py 'The soup was not bad at all.'     needs only onnxruntime and tokenizers
      emhrnn export run --torch run.pt2

    A file is compared with the model on random documents before it is handed out. ONNX needs the extra: onnx.
    """
    from emhrnn.cli.printing import percent, print_json, say
    from emhrnn.errors import ConfigError

    if onnx is None and torch is None:
        raise ConfigError("export was not told what to write; give --onnx FOLDER, or --torch FILE.pt2, or both")
    if onnx is None and (int8 or check is not None):
        raise ConfigError("--int8 and --check are for ONNX; give --onnx FOLDER, too")
    missing = [name for name in ("onnx", "onnxruntime", "tokenizers") if onnx is not None and find_spec(name) is None]
    if missing:
        raise ConfigError(f"export needs {', '.join(missing)}; install it with: pip install 'emhrnn[onnx]'")
    told: dict[str, Any] = {}
    if torch is not None:
        from emhrnn.export.program_file import export_program
        from emhrnn.training.run import load_run

        program = export_program(load_run(run), torch, overwrite=overwrite)
        told["program"] = program.to_dict()
        if not json:
            say(f"{torch}   {program.bytes / 1e6:7.1f} MB, as the model to {program.difference:.0e}")
    if onnx is not None:
        from emhrnn.corpus import Columns
        from emhrnn.products.exporting import export_run
        from emhrnn.training.data import Named

        data = None
        if check is not None:
            columns = Columns(text=text_column, label=label_column)
            data = Named(path=check, format=format, columns=columns, split=split)
        exported = export_run(run, onnx, int8=int8, check=data, overwrite=overwrite)
        told |= exported.to_dict()
        if not json:
            say(f"{onnx}/model.onnx        {exported.bytes / 1e6:7.1f} MB, as the model to {exported.difference:.0e}")
            if exported.int8_bytes is not None:
                say(f"{onnx}/model.int8.onnx   {exported.int8_bytes / 1e6:7.1f} MB")
            if exported.accuracy is not None:
                line = f"accuracy on {exported.documents:,} documents: {percent(exported.accuracy)}"
                if exported.int8_accuracy is not None:
                    line += f", with 8 bits {percent(exported.int8_accuracy)}"
                say(line)
            say(f"\nNext: python {shlex.quote(str(onnx / 'example.py'))} 'A text of your own.'")
    if json:
        print_json(told)
