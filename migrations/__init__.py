"""The history of the tables, for alembic; `rekindle.persistence.schema.migrate` runs it."""
