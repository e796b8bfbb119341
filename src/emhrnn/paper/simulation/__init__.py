"""The paper's simulation and Table 1.

generator.py    documents with known phrase ends, and the teacher that labels them
enumeration.py  all segmentations of a document at once; the oracle; recovery
learners.py     EM with theta known and unknown; HM-RNN and MHS-RNN
run.py          one method, one reading, one seed as a job; all of them in order
table.py        the table and its figure
"""
