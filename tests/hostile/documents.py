"""JSON that is none, or that parsers disagree about: what strangers send, have sent to others, or may yet send."""

from __future__ import annotations

from typing import Final

_HIGH, _LOW = b"\\ud83d", b"\\ude00"


def _deep(opening: bytes, closing: bytes, levels: int) -> bytes:
    return opening * levels + closing * levels


DOCUMENTS: Final[dict[str, bytes]] = {
    # Nothing, and what is no text
    "empty": b"",
    "space": b" \t\r\n",
    "nul": b"\0",
    "nul behind": b"{}\0",
    "byte order mark": b"\xef\xbb\xbf{}",
    "byte order mark twice": b"\xef\xbb\xbf\xef\xbb\xbf{}",
    "half a byte order mark": b"\xef\xbb{}",
    "utf-16": '{"a":1}'.encode("utf-16"),
    "utf-16 without mark": '{"a":1}'.encode("utf-16-be"),
    "utf-32": '{"a":1}'.encode("utf-32"),
    "latin-1": b'{"a":"\xfc"}',
    "overlong slash": b'{"a":"\xc0\xaf"}',
    "cut letter": b'{"a":"\xe2\x82"}',
    "beyond unicode": b'{"a":"\xf4\x90\x80\x80"}',
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
    # Halves of surrogate pairs
    "high half": b'{"a":"\\ud800"}',
    "low half": b'{"a":"\\udc00"}',
    "halves the wrong way round": b'{"a":"' + _LOW + _HIGH + b'"}',
    "half before a pair": b'{"a":"\\ud800' + _HIGH + _LOW + b'"}',
    "half behind a pair": b'{"a":"' + _HIGH + _LOW + b'\\udfff"}',
    "half in capitals": b'{"a":"\\uD83D"}',
    "half and a letter": b'{"a":"' + _HIGH + b'x"}',
    "half behind a backslash": b'{"a":"\\\\' + _HIGH + b'"}',
    "half as a name": b'{"\\ud800":1}',
    "half in a list": b'[["\\ud800"]]',
    "half as the document": b'"\\ud800"',
    "half in bytes": b'{"a":"\xed\xa0\x80"}',
    "both halves in bytes": b'{"a":"\xed\xa0\xbd\xed\xb8\x80"}',
    "no half, but its escape": b'{"a":"\\\\ud800"}',
    "a pair": b'{"a":"' + _HIGH + _LOW + b'"}',
    "half of an escape": b'{"a":"\\ud8"}',
    # Numbers
    "NaN": b'{"a":NaN}',
    "Infinity": b'{"a":Infinity}',
    "minus Infinity": b'{"a":-Infinity}',
    "NaN alone": b"NaN",
    "too large": b'{"a":1e999}',
    "too large in capitals": b'{"a":-1E+999}',
    "too large without exponent": b'{"a":' + b"9" * 310 + b".0}",
    "too small": b'{"a":1e-999}',
    "whole number of 4,301 digits": b'{"a":' + b"9" * 4_301 + b"}",
    "whole number of 100,000 digits": b'{"a":-' + b"1" * 100_000 + b"}",
    "whole number of 300 digits": b'{"a":' + b"9" * 300 + b"}",
    "beyond 64 bits": b'{"a":18446744073709551616}',
    "beyond 53 bits": b'{"a":9007199254740993}',
    "minus zero": b'{"a":-0}',
    "minus zero point zero": b'{"a":-0.0}',
    "plus": b'{"a":+1}',
    "leading zero": b'{"a":01}',
    "hexadecimal": b'{"a":0x10}',
    "no digits behind the point": b'{"a":1.}',
    "no digits before the point": b'{"a":.5}',
    "exponent without digits": b'{"a":1e}',
    "underscore": b'{"a":1_000}',
    "digits of another script": '{"a":١٢}'.encode(),
    "nan as text": b'{"a":"nan","expires_in":"nan","delay":"nan","value":"nan","data_type":"float"}',
    "infinity as text": b'{"a":"inf","expires_in":"Infinity","delay":"inf","value":"-inf","data_type":"float"}',
    "huge number as text": b'{"delay":"' + b"9" * 5_000 + b'","expires_in":"' + b"9" * 5_000 + b'"}',
    # Depth
    "lists in 100 levels": _deep(b"[", b"]", 100),
    "lists in 101 levels": _deep(b"[", b"]", 101),
    "lists in 1,000 levels": _deep(b"[", b"]", 1_000),
    "lists in 100,000 levels": _deep(b"[", b"]", 100_000),
    "objects in 100,000 levels": _deep(b'{"a":', b"}", 100_000),
    "lists that never end": b"[" * 100_000,
    "brackets in a text": b'{"a":"' + b"[" * 10_000 + b'"}',
    # Members
    "a name twice": b'{"a":1,"a":2}',
    "a name twice, once escaped": b'{"a":1,"\\u0061":2}',
    "a name twice within": b'{"payload":{"a":1,"a":2}}',
    "an empty name": b'{"":1}',
    "__proto__": b'{"__proto__":{"a":1},"constructor":{"prototype":1}}',
    "name of nul": b'{"\\u0000":"\\u0000"}',
    "a very long name": b'{"' + b"x" * 100_000 + b'":1}',
    "10,000 members": b"{" + b",".join(b'"%d":%d' % (n, n) for n in range(10_000)) + b"}",
    # Grammar
    "comma behind": b'{"a":1,}',
    "comma behind in a list": b"[1,]",
    "comma alone": b"[,]",
    "no colon": b'{"a" 1}',
    "single quotes": b"{'a':1}",
    "no quotes": b"{a:1}",
    "comment": b'{"a":1}//',
    "comment within": b'{"a":/* */1}',
    "two documents": b"{}{}",
    "two lines": b'{"a":1}\n{"a":2}',
    "cut off": b'{"a":{"b":[1,2',
    "cut off in a text": b'{"a":"b',
    "closed too often": b'{"a":1}}',
    "True": b'{"a":True}',
    "undefined": b'{"a":undefined}',
    "unknown escape": b'{"a":"\\x41"}',
    "line end in a text": b'{"a":"b\nc"}',
    "tab in a text": b'{"a":"b\tc"}',
    "escape character in a text": b'{"a":"\x1b[31m"}',
    "vertical tab between": b'{"a":\x0b1}',
    "no-break space between": '{"a":\xa01}'.encode(),
    "line separators in a text": '{"a":"\u2028\u2029\x85"}'.encode(),
    "line separator between": '{"a":\u20281}'.encode(),
    "marks that turn the direction": '{"a":"\u202e\u2066"}'.encode(),
    "no character": '{"a":"\ufffe\U0010ffff"}'.encode(),
    # No object
    "null": b"null",
    "true": b"true",
    "number": b"7",
    "text": b'"a"',
    "list": b"[]",
    "list of everything": b'[null,true,1,"a",[],{}]',
    "text of 1 MiB": b'"' + b"a" * 1_048_576 + b'"',
    "escapes of 1 MiB": b'{"a":"' + (_HIGH + _LOW) * 87_000 + b'"}',
    # Known names with values nobody expects
    "null everywhere": b'{"access_token":null,"expires_in":null,"message_id":null,"messages":null,"parameters":null,'
    b'"notifications":null,"partialSuccess":null,"services":null,"source":null,"data":null}',
    "lists everywhere": b'{"access_token":[],"expires_in":[],"message_id":[],"messages":[[]],"parameters":[[]],'
    b'"notifications":[[]],"partialSuccess":[],"services":[[]],"source":[],"data":[]}',
    "objects everywhere": b'{"access_token":{},"expires_in":{},"message_id":{},"messages":{},"parameters":{},'
    b'"notifications":{},"partialSuccess":{},"services":{},"source":{},"data":{},"error":{}}',
    "halves everywhere": b'{"access_token":"\\ud800","expires_in":"\\ud800","message_id":"\\ud800","source":"\\ud800",'
    b'"error":"\\ud800","msg":"\\ud800","body":"\\ud800","source_msg_id":"\\ud800","name":"\\ud800"}',
    "NaN everywhere": b'{"access_token":"abc","expires_in":NaN,"delay":NaN,"partialSuccess":{"rejectedSpans":NaN}}',
    "too large everywhere": b'{"access_token":"abc","expires_in":1e400,"delay":1e400,'
    b'"partialSuccess":{"rejectedSpans":1e400}}',
}
"""Documents by what is odd about them."""
