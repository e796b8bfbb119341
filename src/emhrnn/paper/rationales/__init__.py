"""Explanations beside human evidence (`emhrnn paper rationales`): data.py reads it, methods.py explains, report.py
compares."""
