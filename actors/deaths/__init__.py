"""Pure: what is known of a death: its cause, its exit, the evidence, the probable reason."""
