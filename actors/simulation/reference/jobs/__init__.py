"""What must follow for jobs: who may claim them, when they end, what comes after them."""
