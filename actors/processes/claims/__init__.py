"""Claims on jobs for workers that do not know the database: the supervisor exchanges in their place."""
