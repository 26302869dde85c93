"""Queues: created, changed, listed and deleted, their subscribers and senders, and the alerts of their sizes."""
