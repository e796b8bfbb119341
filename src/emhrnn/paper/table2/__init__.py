"""The paper's Table 2: its rows by name, on its own sets where the user has them, else on named stand-ins.

numbers.py  what the paper prints, and what the papers it cites printed
rows.py     what is run under these names, and what stands in for Bert-base
sets.py     the sets by the names of their published files
report.py   the three kinds of numbers, kept apart
run.py      all of it in order
"""
