"""Where gangs come from: one module per family of objects, each a pure function from an object to a gang.

A source says two things: which gang and which pod set a pod belongs to, and what the gang of an object looks like.
"""
