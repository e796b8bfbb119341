"""`python -m emhrnn` is the same as `emhrnn`."""

from emhrnn.products.cli import main

main()
