"""The warm process: imports an application once, and forks its workers."""
