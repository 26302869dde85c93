"""What ``make run`` shows, with clients of each protocol and a shop that receives."""
