"""The tables, and how a database is brought up to date."""
