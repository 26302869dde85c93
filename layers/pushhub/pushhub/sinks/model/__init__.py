"""What a message becomes at a service of AWS, and what its answers mean."""
