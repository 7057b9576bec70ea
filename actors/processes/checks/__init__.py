"""Looks at what workers do and say of themselves, and tells the HealthMonitor."""
