"""The operator at Grove's published scale, against a client that makes only the writes that cannot be avoided."""
