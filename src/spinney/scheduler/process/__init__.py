"""The scheduler as a process: watches, wakes, commits, serves."""
