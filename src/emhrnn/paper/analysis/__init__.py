"""The paper's Table 3 and Figures 4-5: how EM-HRNN and MHS-RNN read.

words.py        the weight of each word beside chance, summed word by word
analyse.py      one pass over the data by both runs
table3.py       the two runs, and Table 3
figures.py      Figures 4 and 5
"""
