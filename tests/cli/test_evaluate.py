"""The tables of `emhrnn evaluate`."""

from emhrnn.cli.evaluate import confusion_table


def test_a_confusion_matrix_fits_the_terminal() -> None:
    names = [f"a rather long name {i}" for i in range(12)]
    counts = [[10 * (i == j) + (i == 3 and j == 4) for j in range(12)] for i in range(12)]
    shown = {width: confusion_table(names, counts, width) for width in (400, 100, 60)}
    for width, table in shown.items():
        assert max(map(len, table.splitlines())) <= width
    assert shown[400].splitlines()[1].split("  ")[-1] == names[-1]
    assert shown[100].splitlines()[1].split() == [str(i) for i in range(1, 13)]
    assert shown[100].splitlines()[-1].startswith("12 a rather long name 11")
    assert shown[60].splitlines()[-1].split("  ")[-2:] == [names[3], names[4]]
    assert "1 error" in shown[60]
