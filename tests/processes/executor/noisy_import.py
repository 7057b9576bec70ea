"""A module whose import leaves a thread running, so that a process that has imported it is not forked."""

import threading

threading.Thread(target=threading.Event().wait, daemon=True, name="noise").start()
