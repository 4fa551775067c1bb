"""When an answer of a plugin may be used again: what its function read is known, and has not changed."""
