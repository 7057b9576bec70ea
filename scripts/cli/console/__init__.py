"""What the commands share: options, targets, exit codes, where an answer comes from."""
