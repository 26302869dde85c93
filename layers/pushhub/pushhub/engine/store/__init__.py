"""The engine's ports on DynamoDB, SQS and S3.

SDK errors leave here as errors of :mod:`pushhub.base.errors`, with the cause kept.
"""
