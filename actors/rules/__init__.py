"""Pure: stand-alone decisions: restarts, health, the stop ladder, breakers, limits, alerts."""
