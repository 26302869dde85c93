"""What needs the SDK: roles, and signatures of requests."""
