"""The tables, and the upgrade of a database."""
