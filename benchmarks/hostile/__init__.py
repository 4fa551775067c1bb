"""Objects that are valid and meant badly."""
