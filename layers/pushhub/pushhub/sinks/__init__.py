"""Subscribers on AWS: queues, topics, event buses and functions of other accounts."""
