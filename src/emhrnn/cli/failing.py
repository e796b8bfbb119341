"""Work of which a part failed: the table is written and shown, and a script must not take it for whole."""

from collections.abc import Sequence

from emhrnn.cli.printing import counted
from emhrnn.errors import TrainingError


def end_if_failed(failed: Sequence[str]) -> None:
    """The last thing a command does. The code is that of `emhrnn train`, had it been asked for the same run.

    Raises:
        TrainingError: some runs failed; it names them all.
    """
    if failed:
        raise TrainingError(
            f"{counted(len(failed), 'run')} failed: {', '.join(failed)}; the table is written without them and tells "
            "why; the same command tries them again"
        )
