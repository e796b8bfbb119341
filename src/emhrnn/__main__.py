"""`python -m emhrnn` is the same as `emhrnn`."""

from emhrnn.cli import main

main()
