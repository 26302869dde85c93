"""Topics, backlogs and connections on DynamoDB, SQS and the gateway's connections."""
