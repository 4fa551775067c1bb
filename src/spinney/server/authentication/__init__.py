"""Who is asking: users, the tokens of service accounts, and speaking for somebody else."""
