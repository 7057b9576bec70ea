"""What users would pick instead of Rekindle, measured by turns in the same run."""
