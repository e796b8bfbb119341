"""How trained models read: the lengths of their phrases, what their attention falls on, and where two of them differ.

weights.py      one batch: the weight of each word beside chance, the most important word of each document
tally.py        sums of these over all documents, word by word
sampling.py     documents drawn from a stream
ties.py         the words most tied to each class
passing.py      one pass over the data; analyse.py makes an Analysis of it
judging.py      disagreements for a person to judge, blind; votes.py counts what was saved
markdown.py, page.py    the Analysis as report.md and report.html
table3.py, figures.py   the paper's Table 3 and Figures 4-5 from two runs
"""
