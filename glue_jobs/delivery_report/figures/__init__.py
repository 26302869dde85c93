"""The numbers of a report: cells counted once a day, and the query of every table over them."""
