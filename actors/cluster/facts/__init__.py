"""Pure: what is known of a cluster, as the database holds it and as agents send it to each other."""
