"""What opens something: credentials, gates and tokens on the way to subscribers, and signatures."""
