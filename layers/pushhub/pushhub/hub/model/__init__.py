"""The hub's rules as plain data and pure functions."""
