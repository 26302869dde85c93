"""Webhooks: the fourth protocol.

Clients of the Svix API v1 post messages to applications, whose endpoints get them signed by Standard Webhooks.
"""
