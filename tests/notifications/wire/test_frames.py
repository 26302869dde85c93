"""Frames and ack ids as clients of Notifications 2.0 parse them."""

from __future__ import annotations

import base64
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.json_text import write
from pushhub.notifications.model.topic import Notification, Topic, position_at
from pushhub.notifications.wire.frames import AckIds, frame, frame_size
from pushhub.notifications.wire.publish import one_line, one_line_of_bytes

SECRET, OTHER = b"a" * 32, b"b" * 32
ACK_IDS = AckIds(lambda: [SECRET])
TOPIC = Topic(project="t123", name="orders")
positions = st.integers(0, 2**63 - 1)


@given(positions, st.sampled_from(["", "c1"]))
def test_an_ack_id_stands_for_its_position(position: int, connection_id: str) -> None:
    ack_id = ACK_IDS.write(position, connection_id)
    # Eleven bytes in the standard alphabet, padded, as real ones are.
    assert re.fullmatch(r"[A-Za-z0-9+/]{15}=", ack_id)
    assert len(base64.b64decode(ack_id, validate=True)) == 11
    assert ACK_IDS.read(ack_id, "c1") == (position, bool(connection_id))


@given(positions)
def test_the_ack_id_of_a_shared_consumer_is_good_on_its_connection_only(position: int) -> None:
    assert ACK_IDS.read(ACK_IDS.write(position, "c1"), "c2") is None


@given(positions, st.integers(0, 87))
def test_a_changed_ack_id_is_none(position: int, bit: int) -> None:
    raw = bytearray(base64.b64decode(ACK_IDS.write(position)))
    raw[bit // 8] ^= 1 << bit % 8
    assert ACK_IDS.read(base64.b64encode(raw).decode(), "c1") is None


@given(st.text(max_size=40))
def test_garbage_is_none(text: str) -> None:
    assert ACK_IDS.read(text, "c1") is None


def test_a_secret_that_was_rotated_out_still_reads() -> None:
    ack_id = ACK_IDS.write(5)
    assert AckIds(lambda: [OTHER, SECRET]).read(ack_id, "c1") == (5, False)
    assert AckIds(lambda: [OTHER]).read(ack_id, "c1") is None


def notification(body: str) -> Notification:
    return Notification(message_id="1", api="measurements", source="111", action="CREATE", body=body)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values, positions)
def test_every_client_s_way_of_reading_gives_the_same(value: object, position: int) -> None:
    text = frame(ACK_IDS.write(position), TOPIC, notification(one_line(write(value, spaced=True))))
    # Python: lines at every character that Unicode calls a break, the body is the last one, more than three of them.
    lines = text.splitlines()
    assert len(lines) == 5
    assert (lines[0], lines[1], lines[2]) == (ACK_IDS.write(position), "/t123/measurements/111", "CREATE")
    assert json.loads(lines[-1]) == value
    # Java: headers up to the first empty line, the body is the rest; the type is the third part of the description.
    header, body = text.split("\n\n", 1)
    assert json.loads(body) == value
    assert header.split("\n")[1].split("/")[2] == "measurements"
    # Go: the first line after the empty one.
    assert text.split("\n")[4] == body


def test_an_empty_body_still_has_its_empty_line() -> None:
    text = frame(ACK_IDS.write(1), TOPIC, notification(""))
    assert text.endswith("CREATE\n\n")
    assert len(text.splitlines()) > 3


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"", ""),
        (b'{"a": 1.10}', '{"a": 1.10}'),
        (b"plain text", "plain text"),
        (b'{\n  "a": 1.10\r\n}\n', '{  "a": 1.10}'),
        ('{"a": "\u2028"}'.encode(), '{"a": "\\u2028"}'),
        ("\u00e4\u0085\u00f6".encode(), base64.b64encode("\u00e4\u0085\u00f6".encode()).decode()),
        (b"two\nlines", base64.b64encode(b"two\nlines").decode()),
        (b"\xff\x00", "/wA="),
    ],
)
def test_bodies_of_queue_messages_become_one_line(body: bytes, line: str) -> None:
    assert one_line_of_bytes(body) == line


@given(st.binary(max_size=60))
def test_whatever_a_queue_holds_is_one_line(body: bytes) -> None:
    assert len(("x" + one_line_of_bytes(body)).splitlines()) == 1


def test_the_size_of_a_frame_is_told_in_bytes() -> None:
    each = notification("ä" * 10)
    assert frame_size(TOPIC, each) == len(frame(ACK_IDS.write(position_at(9, 9)), TOPIC, each).encode())
