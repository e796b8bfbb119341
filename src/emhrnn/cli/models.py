"""`emhrnn models`: every system that can be trained."""

from emhrnn.cli.options import Json


def models(json: Json = False) -> None:
    """List every system: its parameters besides word vectors, what it needs, what it can show, who wrote it.

    Train one with `emhrnn train DATA --out RUN --model NAME`.
    """
    from emhrnn.cli.printing import print_json, say
    from emhrnn.cli.tables import aligned
    from emhrnn.products.systems import systems

    rows = systems()
    if json:
        print_json({"models": [row.to_dict() for row in rows]})
        return
    table = [["name", "parameters", "learns", "shows", "needs", "reference"]]
    table += [
        [
            row.name,
            "-" if row.parameters is None else f"{row.parameters:,}",
            row.learns,
            ", ".join(row.shows) or "-",
            ", ".join(row.needs) or "-",
            row.reference,
        ]
        for row in rows
    ]
    say(aligned(table, numbers={1}))
