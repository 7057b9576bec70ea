"""Pure: the validated settings of the gateways."""
