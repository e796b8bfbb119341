"""How good explanations are: `emhrnn paper faithfulness` and `rationales`.

methods.py       explanation methods: scores of words, phrases and sentences, with their cost
agreement.py     figures from sums over documents, with bootstrap intervals
table.py         every method of some runs on the same documents, as data and Markdown
faithfulness.py  does the prediction change without what a method calls important?
rationales.py    does a method agree with evidence that people marked (human.py)?
"""
