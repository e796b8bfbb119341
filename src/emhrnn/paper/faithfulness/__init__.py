"""How faithful explanations are (`emhrnn paper faithfulness`): measure.py runs it, table.py shows it."""
