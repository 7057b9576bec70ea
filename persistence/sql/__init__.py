"""Statements, and the encoding and decoding of rows."""
