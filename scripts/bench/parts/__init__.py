"""The parts of a measurement: one module for each thing that is measured."""
