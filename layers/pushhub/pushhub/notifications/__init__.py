"""Cumulocity Notifications 2.0: topics, and consumers over WebSocket."""
