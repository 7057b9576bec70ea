"""Pure: what people read: explanations, timelines, bug reports, events as sentences."""
