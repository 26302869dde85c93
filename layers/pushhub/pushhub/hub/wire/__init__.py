"""The hub's shapes: what endpoints and operators send and are sent. Pure functions only."""
