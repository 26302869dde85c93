"""What waits longer than a queue hides it, and what fell out of the queues."""
