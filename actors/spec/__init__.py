"""Pure: what a host declares about its workers, validated when it is constructed."""
