"""What was accepted is delivered, given up or still waits, and everything that contradicts this is named."""
