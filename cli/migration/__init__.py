"""What another sender's account has, copied to a hub: each sender's API, and what the hub would refuse of it."""
