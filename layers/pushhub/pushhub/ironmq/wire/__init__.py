"""IronMQ's shapes: what clients send and are sent. Pure functions only."""
