"""Asks workers whether they are well: over HTTP, by a connection or by a program."""
