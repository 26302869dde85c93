"""The real template on the emulator: made to suit it, packed, deployed and found there."""
