"""The session scheduler: session, statement, node sets, actions, plugins, fair share, topology."""
