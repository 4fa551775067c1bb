"""A framework that asks everything, and random plugins and clusters to compare it with the real one."""
