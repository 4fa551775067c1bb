"""Who may do what: role-based access control, and the reviews that tell."""
