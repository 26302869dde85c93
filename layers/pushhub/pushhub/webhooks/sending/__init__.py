"""Requests to endpoints: made, signed, sent, logged."""
