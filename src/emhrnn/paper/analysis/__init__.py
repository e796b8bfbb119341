"""How trained models read: the lengths of their phrases, what their attention falls on, and where two of them differ.

words.py        the weight of each word beside chance, summed word by word; the words most tied to each class
analyse.py      one pass over the data -> Analysis (analysis.py)
report.py       the Analysis as report.md and report.html
judge.py        disagreements for a person to judge, blind; the votes, counted
table3.py, figures.py   the paper's Table 3 and Figures 4-5 from two runs
"""
