"""The emulator hands a message out once, to whoever asks first, and what is deleted stays so."""

from __future__ import annotations

import io
import json
import zipfile
from concurrent.futures import ThreadPoolExecutor

from local.aws import Aws
from local.emulator import lifecycle
from local.place import Place
from local.processes import wait_until
from tests.local.iam_roles import make_role

MESSAGES = 600

HANDLER = """
import json, os
def handler(event, context):
    for each in event["Records"]:
        with open(os.environ["SEEN"], "a") as file:
            file.write(each["body"] + "\\n")
    return {"batchItemFailures": []}
"""


def test_a_message_is_handed_out_once_to_runs_and_callers_that_ask_at_the_same_time(place: Place) -> None:
    # Given a queue with messages, and a function that is run for them
    lifecycle.start(place)
    aws = Aws(place.aws_endpoint_url)
    seen = place.home / "seen"
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("code_of_it.py", HANDLER)
    url = aws.sqs().create_queue(QueueName="shared", Attributes={"VisibilityTimeout": "3600"})["QueueUrl"]
    aws.functions().create_function(
        FunctionName="takes",
        Runtime="python3.11",
        Role=make_role(aws),
        Handler="code_of_it.handler",
        Code={"ZipFile": code.getvalue()},
        Environment={"Variables": {"SEEN": str(seen)}},
    )
    for start in range(0, MESSAGES, 10):
        entries = [{"Id": str(number), "MessageBody": str(start + number)} for number in range(10)]
        aws.sqs().send_message_batch(QueueUrl=url, Entries=entries)  # type: ignore[arg-type]
    arn = aws.sqs().get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]

    def take() -> list[str]:
        """What a caller gets that asks until there is nothing."""
        client, taken = Aws(place.aws_endpoint_url).sqs(), []
        for _ in range(MESSAGES):
            messages = client.receive_message(QueueUrl=url, MaxNumberOfMessages=2).get("Messages", [])
            for each in messages:
                client.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
            taken += [each["Body"] for each in messages]
            if not messages:
                break
        return taken

    def waiting() -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        return sum(map(int, aws.sqs().get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"].values()))  # type: ignore[arg-type]

    # When it and four callers take them side by side
    aws.functions().create_event_source_mapping(
        FunctionName="takes", EventSourceArn=arn, BatchSize=10, FunctionResponseTypes=["ReportBatchItemFailures"]
    )
    with ThreadPoolExecutor(4) as pool:
        taken = [body for bodies in pool.map(lambda _: take(), range(4)) for body in bodies]
    assert wait_until(lambda: waiting() == 0, 60)
    # Then each came once, to one of them, and both had some
    by_runs = seen.read_text().split()
    assert taken
    assert sorted(map(int, taken + by_runs)) == [*range(MESSAGES)], json.dumps([len(taken), len(by_runs)])
