"""`python -m rekindle` is the command `rekindle`."""

import json
import os
import sys


def run() -> None:
    """Run the command; a new version of a supervisor that cannot be loaded gives way to the former one."""
    try:
        from rekindle.cli.main import main

        main()
    except BaseException as error:
        # Set by `rekindle upgrade`, until the new version has taken over what was left to it.
        former = os.environ.pop("REKINDLE_FORMER", None)
        if former is not None:
            argv = json.loads(former)
            cause = error.__context__ or error  # what a command turned into an exit code
            reason = str(cause) or type(cause).__name__
            sys.stderr.write(f"rekindle: the new version cannot be started: {reason}\n")
            os.execve(argv[0], argv, {**os.environ, "REKINDLE_UPGRADE_FAILED": reason})
        raise


run()
