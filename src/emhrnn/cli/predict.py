"""`emhrnn predict`: labels and probabilities for files of any size."""

from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import Encoding, Format, Json, Quiet, RunFolder, Split, TextColumn, argument, flag, option


def predict(
    run: RunFolder,
    data: Annotated[
        list[Path],
        argument(
            "Files (csv, tsv, jsonl, xlsx, parquet; also .gz, .xz, .zst), patterns, folders, saved `datasets`.",
            "DATA...",
        ),
    ],
    out: Annotated[Path, option("File to write: .parquet, .csv or .jsonl. It is replaced.", "FILE")],
    explain: Annotated[bool, flag("--explain", "Add the sentence, phrase and word that decided.")] = False,
    workers: Annotated[int | None, option("Processes that score.", shown="all cores", min=1)] = None,
    restart: Annotated[bool, flag("--restart", "Start again instead of resuming an unfinished call.")] = False,
    text_column: TextColumn = None,
    format: Format = None,
    encoding: Encoding = None,
    split: Split = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Classify every row of files: one output row per input row, in the same order, with its id.

    \b
    Examples:
      emhrnn predict run new.csv --out labels.csv
      emhrnn predict run 'parts/*.jsonl.gz' --out labels.parquet --text-column body
      emhrnn predict run new.jsonl --out labels.jsonl --explain

    Writes FILE with the columns id (the id column of DATA, else the row number from 0), label, and p_CLASS for every
    class. A row that cannot be scored (broken, no text, no words) has an empty label, and FILE.errors.jsonl says why.

    FILE appears when all rows are scored. Until then FILE.unfinished holds the results so far: after Ctrl-C, kill or a
    power failure the same command resumes, and FILE is the same byte for byte.
    """
    import time

    from emhrnn.cli.output import counted, print_json, say
    from emhrnn.cores import cores
    from emhrnn.corpus import Columns
    from emhrnn.scoring import score
    from emhrnn.scoring.chunks import Data

    began = time.perf_counter()
    columns = Columns(text=text_column, labelled=False)
    named = Data(paths=tuple(data), format=format, columns=columns, split=split, encoding=encoding)
    try:
        scored = score(
            run, named, out,
            explain=explain, workers=workers or cores(), restart=restart, progress=not quiet,
        )  # fmt: skip
    except KeyboardInterrupt:
        kept = out.with_name(out.name + ".unfinished").exists()
        state = "is not complete; the same command resumes it" if kept else "was not written"
        raise KeyboardInterrupt(f"{out} {state}") from None
    seconds = time.perf_counter() - began
    if json:
        print_json(
            {
                "out": str(out), "rows": scored.rows, "unscored": scored.unscored, "repaired": scored.repaired,
                "words": scored.words, "before": scored.before,
                "errors": scored.errors and str(scored.errors), "seconds": seconds,
            }
        )  # fmt: skip
        return
    rate = f", {(scored.rows - scored.before) / seconds:,.0f} rows/s"
    again = f" ({scored.before:,} of them by an earlier call)" if scored.before else ""
    say(f"{counted(scored.rows, 'row')}{again} to {out} in {seconds:.1f} s{rate}")
    if scored.errors is not None:
        rows = [f"{counted(scored.unscored, 'row')} could not be scored"] if scored.unscored else []
        if scored.repaired:
            was = "was" if scored.repaired == 1 else "were"
            rows.append(f"{counted(scored.repaired, 'row')} {was} repaired (bytes that are not UTF-8, or NUL)")
        say(f"{', '.join(rows)}; {scored.errors} lists each")
