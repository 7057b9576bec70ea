"""Commands that give orders to a running supervisor."""
