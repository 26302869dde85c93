"""The rules of the hub as plain data and pure functions: no AWS, no HTTP, no clock of its own."""
