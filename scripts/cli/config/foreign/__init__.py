"""Pure: configuration files of other supervisors, translated."""
