"""What the status of each kind says, computed from what was observed, and how it is written."""
