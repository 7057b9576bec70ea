"""Workers of other task queues that report their jobs to Rekindle; each module needs the queue it names."""
