"""How fast the embedded server is, in process and without a client library."""
