"""Plans of moves."""
