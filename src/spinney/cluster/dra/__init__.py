"""Dynamic resource allocation: what drivers publish, what claims ask for, and which devices meet which requests."""
