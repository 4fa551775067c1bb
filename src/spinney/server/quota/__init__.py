"""Resource quotas: what objects use, what a namespace may use, and the book that is kept about it."""
