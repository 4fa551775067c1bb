"""What client and server say to each other: requests, responses, bodies, errors, and who asks."""
