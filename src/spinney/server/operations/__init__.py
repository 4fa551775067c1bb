"""What can be asked of the server: reading, watching, creating, updating and deleting objects."""
