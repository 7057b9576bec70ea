"""Files for other programs, made from a configuration."""
