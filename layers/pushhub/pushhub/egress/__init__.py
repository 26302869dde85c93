"""Requests to other people's endpoints: every address is checked at the socket, every answer is bounded."""
