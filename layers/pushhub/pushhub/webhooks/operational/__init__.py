"""Operational events: the hub's own messages to a project."""
