"""How many jobs a second: Rekindle beside Huey and Procrastinate, in one run, at equal durability."""
