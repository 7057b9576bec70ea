"""Pure: what a gateway is configured with, validated."""
