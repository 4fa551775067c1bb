"""What follows from the fields of the built-in kinds for a server: reading protobuf, and schemas for discovery."""
