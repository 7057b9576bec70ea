"""`python -m rekindle` is the command `rekindle`."""

from rekindle.cli.main import main

main()
