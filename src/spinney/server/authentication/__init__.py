"""Who is asking: users, the tokens of service accounts, and acting as another user."""
