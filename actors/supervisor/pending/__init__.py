"""What the Supervisor waits for: starts, stops, ends of pauses, timers."""
