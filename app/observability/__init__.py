"""Log lines and metrics of a process."""
