"""The commands that talk to a running supervisor, and those that set things up."""
