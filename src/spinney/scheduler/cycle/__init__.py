"""One scheduling cycle: a session is opened, actions run, what was refused is explained."""
