"""`rekindle simulate`: from its options to forecasts, shown as text, JSON or a picture."""
