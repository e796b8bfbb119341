"""The paper's simulation and Table 1.

world.py        documents with known phrase ends, and the teacher that labels them; all their segmentations; the oracle
learners.py     EM with theta known and unknown; HM-RNN and MHS-RNN
run.py          one method, one reading, one seed as a job; all of them in order
table.py        the table and its figure
"""
