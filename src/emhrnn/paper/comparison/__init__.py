"""Rows of systems on sets of data, under one protocol, with error bars.

    compare([DataSet("yelp", Path("yelp.jsonl.gz"))], parse_rows(["tfidf-lr", "em-hrnn"]), Path("out"), ...)

rows.py     what is compared: a system and its own settings
splits.py   which documents are trained on, validated and tested on
data.py     a set, prepared once for all rows
run.py      one system, one set, one seed
table.py    what came out, with significance
markdown.py, html.py    the table to read
compare.py  all of it in order
"""
