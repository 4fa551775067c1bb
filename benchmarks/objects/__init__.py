"""What decoding pods costs, against the official client."""
