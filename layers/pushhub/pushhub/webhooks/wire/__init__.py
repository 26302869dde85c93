"""Webhooks on the wire: the JSON of the Svix API v1, and the requests made to endpoints."""
