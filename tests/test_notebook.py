"""The notebooks of docs/ run from the first cell to the last, and show an explanation."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("text/html" in output.get("data", {}) for output in shown), "an explanation shows itself as HTML"
    assert not any(output.output_type == "error" or output.get("name") == "stderr" for output in shown)
