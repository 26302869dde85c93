"""The one table of list prices: what ``bench/cost.py``, ``bench/months.py`` and ``pushhub cost`` count with.

US dollars, us-east-1, on demand, without free tiers or discounts, as published in November 2026 (see the AWS price page
of each service).
"""

from __future__ import annotations

from typing import Final

PRICES: Final[dict[str, float]] = {
    "http_api_request": 1.00 / 1e6,
    "websocket_message": 1.00 / 1e6,
    "websocket_connection_minute": 0.25 / 1e6,
    "lambda_request": 0.20 / 1e6,
    "lambda_gb_second_arm64": 0.0000133334,
    "lambda_gb_second_x86_64": 0.0000166667,
    "dynamodb_write_unit": 0.625 / 1e6,
    "dynamodb_read_unit": 0.125 / 1e6,
    "dynamodb_stream_read_by_lambda": 0.0,
    "dynamodb_gb_month": 0.25,
    "dynamodb_history_gb_month": 0.20,
    "sqs_standard_request": 0.40 / 1e6,
    "sqs_fifo_request": 0.50 / 1e6,
    "sns_request": 0.50 / 1e6,
    "eventbridge_event": 1.00 / 1e6,
    "kinesis_put_unit": 0.014 / 1e6,
    "s3_put": 5.00 / 1e6,
    "s3_get": 0.40 / 1e6,
    "s3_gb_month": 0.023,
    "logs_gb": 0.50,
    "logs_infrequent_gb": 0.25,
    "scheduler_invocation": 1.00 / 1e6,
    "glue_dpu_hour": 0.44,
    "glue_flex_dpu_hour": 0.29,
    "alarm_month": 0.10,
    "metric_month": 0.30,
    "kms_key_month": 1.00,
    "kms_request": 0.03 / 1e4,
    "athena_tb": 5.00,
    "data_out_gb": 0.09,
}
"""Price of one unit.

A write unit is 1 KB, a read unit 4 KB (strongly consistent; half when eventual), an SQS request 64 KB. History is
point-in-time recovery, paid for by the table's size.
"""
