"""What grouping costs."""
