"""Jobs that come after others, and batches."""
