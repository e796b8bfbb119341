"""How faithful explanations are: the table of `emhrnn paper faithfulness`."""
