"""The alembic migrations; `rekindle.persistence.schema.migrate` runs them."""
