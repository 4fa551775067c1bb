"""What plugins of both schedulers have in common: how they are found, and how they are given their arguments."""
