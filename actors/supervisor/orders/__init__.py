"""The parts of the Supervisor that carry out the orders of operators."""
