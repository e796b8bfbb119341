"""The paper's Table 3 and Figures 4-5: how EM-HRNN and MHS-RNN read.

analyse.py      one pass over the data by both runs: attention of words, phrase lengths, important words
table3.py       the two runs, Table 3, and Figures 4 and 5
"""
