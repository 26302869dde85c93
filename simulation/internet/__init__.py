"""The internet in memory: what lies between the hub's own code that sends requests and whoever answers them."""
