"""The paper's Table 2: its rows by name, on its own sets where the user has them, else on named stand-ins.

plan.py     the rows: what the paper and the papers it cites print, and what is run
sets.py     the sets, by their published files; what to download, and whether it is whole
report.py   all of it in order; the three kinds of numbers, kept apart
"""
