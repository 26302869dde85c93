"""The emulator is served by uvicorn, and clients get what hypercorn gave them."""

from __future__ import annotations

import contextlib
import http.client
import socket

from local.place import Place


def test_it_is_not_served_by_hypercorn(place: Place) -> None:
    # Given a request that the two refuse in different words
    with socket.create_connection(("127.0.0.1", place.aws_port), timeout=90) as client:
        client.sendall(b"nonsense\r\n\r\n")
        answer = client.makefile("rb").read()
    # Then it is uvicorn that does
    assert answer.startswith(b"HTTP/1.1 400 Bad Request")
    assert answer.endswith(b"Invalid HTTP request received.")


def test_what_is_stored_comes_back_with_one_date_and_no_name_of_a_server(place: Place) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", place.aws_port, timeout=90)
    with contextlib.closing(connection):
        # Given a large object, at a path with escapes
        connection.request("PUT", "/shelf")
        connection.getresponse().read()
        body = b"\0\xff" * 500_000
        connection.request("PUT", "/shelf/a%2Fb%20%C3%A9", body)
        stored = connection.getresponse()
        stored.read()
        assert stored.status == 200
        # When it is read on the same connection
        connection.request("GET", "/shelf/a%2Fb%20%C3%A9")
        answer = connection.getresponse()
        # Then it is the same
        assert answer.read() == body
        assert (answer.status, answer.reason) == (200, "OK")
        assert len(answer.headers.get_all("date", [])) == 1
        assert "uvicorn" not in answer.headers.get("server", "")
