"""What the commands share: options, targets, exit codes, sources of answers."""
