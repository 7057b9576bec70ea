"""Statements, and how rows become values and values become rows."""
