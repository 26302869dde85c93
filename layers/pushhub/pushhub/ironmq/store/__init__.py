"""Pull queues on DynamoDB."""
