"""The resource paths: from a request to the operation it asks for, and back to a response."""
