"""The job queues that are measured, one library a module, and the application that its workers import."""
