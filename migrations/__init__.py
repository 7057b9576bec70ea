"""The history of the tables, for alembic; `rekindle.persistence.migrate` runs it."""
