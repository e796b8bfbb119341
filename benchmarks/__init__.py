"""Speed, as ratios within one run: `python -m benchmarks.text`, and so on. Nothing here is tested against a clock."""
