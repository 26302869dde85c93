"""What waits longer than a queue hides it, what fell out of the queues, and how subscribers are doing by that."""
