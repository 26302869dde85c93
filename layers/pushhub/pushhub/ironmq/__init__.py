"""IronMQ v3: push and pull queues."""
