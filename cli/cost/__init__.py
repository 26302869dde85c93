"""What a month costs: units that were counted, and dollars of them."""
