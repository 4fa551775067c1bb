"""Why something waits, and what helps."""
