"""How the agents of a cluster reach each other while the database is away."""
