"""The emulator hands a message out once, and what is deleted stays so, however many ask at the same moment."""

from __future__ import annotations

import json
import subprocess

from local.place import REPOSITORY, Place

MESSAGES = 3_000

IN_THE_EMULATOR = """
import asyncio, importlib.util, json, sys, threading
spec = importlib.util.spec_from_file_location("emulator_process", sys.argv[1])
process = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(process)
from ministack.services import sqs
sys.setswitchinterval(0.0005)
process.hand_out_fairly()
if sys.argv[3] == "in turn":
    process.take_turns_at_queues()
url = sqs._act_create_queue({"QueueName": "q", "Attributes": {"VisibilityTimeout": "3600"}}, "")["QueueUrl"]
def call(action, entries):
    does = sqs._HANDLERS[action]
    return does({"QueueUrl": url, "Entries": [{"Id": str(n), **each} for n, each in enumerate(entries)]}, url)
for start in range(0, int(sys.argv[2]), 10):
    call("SendMessageBatch", [{"MessageBody": str(start + n)} for n in range(10)])
taken = []
def for_runs():
    process._taken.spare = False
    while batch := sqs._receive_messages_for_esm(url, 10):
        taken.extend(each["body"] for each in batch)
        sqs._delete_messages_for_esm(url, {each["receipt_handle"] for each in batch})
async def for_callers():
    asked = {"QueueUrl": url, "MaxNumberOfMessages": 10}
    while batch := (await sqs._HANDLERS["ReceiveMessage"](asked, url)).get("Messages"):
        taken.extend(each["Body"] for each in batch)
        call("DeleteMessageBatch", [{"ReceiptHandle": each["ReceiptHandle"]} for each in batch])
threads = [threading.Thread(target=for_runs), threading.Thread(target=lambda: asyncio.run(for_callers()))]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(json.dumps([taken, len(sqs._get_q(url)["messages"])]))
"""


def taken_by_both(how: str) -> tuple[list[int], int]:
    """Numbers of the messages that a function's runs and a caller took from a queue side by side, each of them until
    there were none, and how many are left in it.
    """
    arguments = [str(REPOSITORY / "local" / "emulator_process.py"), str(MESSAGES), how]
    said = subprocess.run(
        [Place.from_environment().emulator_python, "-P", "-c", IN_THE_EMULATOR, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    taken, left = json.loads(said.stdout.splitlines()[-1])
    return sorted(map(int, taken)), left


def test_a_message_is_handed_out_once_to_runs_and_callers_that_ask_at_the_same_time() -> None:
    assert taken_by_both("in turn") == ([*range(MESSAGES)], 0)


def test_without_turns_messages_are_handed_out_twice() -> None:
    # If MiniStack has come to do this itself, there is nothing left to do here.
    taken, _ = taken_by_both("as MiniStack does")
    assert len(taken) > MESSAGES
