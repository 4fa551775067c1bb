"""Packing for what is still to come: what pods ask for, what free space is worth, and what shortage strands."""
