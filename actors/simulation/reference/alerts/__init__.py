"""Pure: what becomes of alerts, recomputed from what is published."""
