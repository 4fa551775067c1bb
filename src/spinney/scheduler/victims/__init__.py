"""Searching for victims: which running pods would have to go, or move, so that a pending job can be placed."""
