"""How faithful explanations are: the table of `emhrnn faithfulness`."""
