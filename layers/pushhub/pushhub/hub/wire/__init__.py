"""The hub's wire formats: what endpoints and operators send and receive. Pure functions only."""
