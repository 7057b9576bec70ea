"""The executions of jobs in this process: how they are asked to end, what they show, what surrounds them."""
