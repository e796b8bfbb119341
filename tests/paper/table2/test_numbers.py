"""The printed numbers."""

from emhrnn.paper.table2.numbers import COLUMNS, PAPER_ROWS, REFERENCE


def test_the_rows_of_the_paper_are_all_there() -> None:
    assert len(PAPER_ROWS) == 18
    assert REFERENCE in PAPER_ROWS
    numbers = [number for row in PAPER_ROWS.values() for number in row.paper.values()]
    assert len(numbers) == 69  # cells of Table 2 that are no dash
    assert round(sum(numbers), 1) == 4547.6
    best = {column: max(row.paper.get(column, 0) for row in PAPER_ROWS.values()) for column in COLUMNS}
    assert list(best.values()) == [67.7, 70.1, 71.6, 75.7, 62.2]


def test_published_numbers_are_kept_where_they_differ() -> None:
    for name, row in PAPER_ROWS.items():
        assert all(row.paper.get(column) != number for column, number in row.published.items()), name
        assert bool(row.published) <= bool(row.note), name
    assert PAPER_ROWS["HN-ATT"].published["Amazon"] == 63.6
    assert PAPER_ROWS["Bert-base"].published == {"Yahoo Answer": 77.58}
    assert PAPER_ROWS["BiLSTM+linear-basis-cust"].published == {"Yelp'13": 67.1}
