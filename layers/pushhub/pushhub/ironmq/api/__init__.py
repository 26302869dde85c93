"""IronMQ's HTTP routes."""
