"""The paper's Table 2: its rows by name, on its own sets where the user has them, else on named stand-ins.

rows.py     what the paper prints, what the papers it cites print, and what is run under these names
sets.py     the sets by the names of their published files
report.py   all of it in order; the three kinds of numbers, kept apart
"""
