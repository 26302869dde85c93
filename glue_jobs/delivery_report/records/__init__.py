"""From the hub's objects to days of records, each record once, with a manifest of what every day was made from."""
