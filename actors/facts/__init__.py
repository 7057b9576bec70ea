"""Pure: what is known and kept: records, jobs, alerts, usage, states."""
