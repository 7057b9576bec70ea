"""Takes the README's screenshots of a running system: `./scripts/pictures/run`."""
