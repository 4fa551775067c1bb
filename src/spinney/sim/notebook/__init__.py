"""A cluster to try policies on, in a notebook or a test."""
