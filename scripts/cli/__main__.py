"""`python -m rekindle.cli` is `rekindle`."""

from .main import main

main()
