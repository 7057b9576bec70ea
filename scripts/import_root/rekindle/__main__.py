"""`python -m rekindle` is the command `rekindle`."""

import gc
import json
import os
import signal
import sys

LOAD_S = 60
"""How long a program that takes over may take to be loaded, in seconds."""


def run() -> None:
    """Run the command; a new version of a supervisor that cannot be loaded gives way to the former one."""
    if "REKINDLE_HAND_OVER" in os.environ:
        gc.disable()  # no worker is watched, and collecting takes a tenth of the time; `settle` ends it
    try:
        if "REKINDLE_FORMER" in os.environ:  # the timer is ended in `resumption.resume`
            signal.signal(signal.SIGALRM, _too_late)
            signal.alarm(LOAD_S)
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
            signal.alarm(0)
            os.execve(argv[0], argv, {**os.environ, "REKINDLE_UPGRADE_FAILED": reason})
        raise


def _too_late(_signum: int, _frame: object) -> None:
    raise TimeoutError(f"it was not loaded within {LOAD_S} s")


run()
