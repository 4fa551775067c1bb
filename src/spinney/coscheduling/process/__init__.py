"""The coscheduler as a process: its configuration, its profiles, what it reads, and what it reports."""
