"""The hub's HTTP routes."""
