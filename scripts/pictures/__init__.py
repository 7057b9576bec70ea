"""The README's pictures, taken of the real thing: `./scripts/pictures/run`."""
