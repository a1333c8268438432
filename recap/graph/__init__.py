"""The context graph: what was observed of a session, as a value that any process can keep."""
