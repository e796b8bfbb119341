"""Rows of systems on sets of data, under one protocol, with error bars.

    compare([DataSet("yelp", Path("yelp.jsonl.gz"))], parse_rows(["tfidf-lr", "em-hrnn"]), Path("out"), ...)

data.py     a set: which documents are trained on, validated and tested on, prepared once for all rows
rows.py     what is compared, a system and its own settings; the job of one row, one set, one seed
table.py    the results, with significance, as data and as Markdown
compare.py  all of it in order
"""
