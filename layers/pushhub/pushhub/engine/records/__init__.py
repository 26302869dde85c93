"""What happened: delivery records, what is counted, found and proved by them, and what they can restore."""
