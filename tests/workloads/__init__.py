"""Published workloads, each brought up as it is written and compared with what the specification says of it."""
