"""Pure: what a supervisor must do, written a second time.

Each module follows a history with a specification of its own of one promise, and shares no code with the
rules that it checks. It hears the entries that it needs, and yields a sentence for each broken promise.
What must happen by some time is a deadline. Times must be exact, so these rules are for virtual time.
"""
