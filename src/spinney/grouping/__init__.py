"""Pods of any workload kind become gangs: rules as data, one pure function, one controller around it."""
