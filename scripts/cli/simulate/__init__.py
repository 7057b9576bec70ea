"""What `rekindle simulate` asks of the forecast, and how it shows the answer: text, JSON, a picture."""
