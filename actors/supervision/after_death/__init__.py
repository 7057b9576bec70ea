"""Pure: what the end of a process leaves behind: claims on jobs, work items, evidence."""
