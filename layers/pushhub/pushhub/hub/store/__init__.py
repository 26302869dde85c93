"""The hub's log and settings on DynamoDB."""
