"""Runs strangers' code, each run in a process of its own: a package that nothing but its function imports."""
