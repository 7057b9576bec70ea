"""Commands that need no running supervisor: files, databases, forecasts, chaos."""
