"""The rules of messages and deliveries as plain data and pure functions: no AWS, no HTTP, no clock of its own."""
