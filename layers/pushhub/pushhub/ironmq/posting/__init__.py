"""Posting: how messages enter queues, from producers, from other people's queues, and from the hub itself."""
