"""Web forms with nested names."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.errors import Invalid
from pushhub.hub.wire.form import parse_form


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", {}),
        ("a=1&b=", {"a": "1", "b": ""}),
        ("a=1&a=2", {"a": "2"}),
        ("integration[name]=acme&integration%5Burl%5D=x", {"integration": {"name": "acme", "url": "x"}}),
        ("m[]=a&m[]=b", {"m": ["a", "b"]}),
        ("p[a][b][]=1&p[a][b][]=2", {"p": {"a": {"b": ["1", "2"]}}}),
        ("f[0][path]=x&f[0][value]=1&f[1][path]=y", {"f": {"0": {"path": "x", "value": "1"}, "1": {"path": "y"}}}),
        ("f[][path]=x&f[][value]=1&f[][path]=y", {"f": [{"path": "x", "value": "1"}, {"path": "y"}]}),
        ("a=gr%C3%BC%C3%9Fe+x", {"a": "grüße x"}),
    ],
)
def test_forms(text: str, fields: dict[str, Any]) -> None:
    assert parse_form(text) == fields


@pytest.mark.parametrize(
    "text",
    [
        "a[b=1",
        "[a]=1",
        "a]=1",
        "a=1&a[b]=2",
        "a[b]=1&a=2",
        "a[]=1&a[b]=2",
        "a[b]=1&a[]=2",
        "a=%FF",
        "a[b][c][d][e][f][g]=1",
        "&".join(f"a{n}=1" for n in range(3000)),
    ],
)
def test_forms_that_cannot_be_read(text: str) -> None:
    with pytest.raises(Invalid):
        parse_form(text)


@given(st.text(alphabet="ab[]=&%1", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        fields: object = parse_form(text)
    except Invalid as error:
        fields = error
    assert isinstance(fields, dict | Invalid)
