"""Where the actors run: lanes (shared threads), timers, and an actor that survives its own exceptions."""
