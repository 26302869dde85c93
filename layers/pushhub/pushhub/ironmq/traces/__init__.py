"""Spans of attempts, exported to a project's collector."""
