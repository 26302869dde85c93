"""HTTP as the APIs see it: the gateway's event, JSON as producers send it, what fits into an answer."""
