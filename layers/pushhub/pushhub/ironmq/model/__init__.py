"""IronMQ's rules as plain data and pure functions."""
