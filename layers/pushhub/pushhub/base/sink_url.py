"""URLs of subscribers on AWS: ``sqs://[key id:secret@]REGION/ACCOUNT/NAME[?role=ARN&endpoint=URL&...]``.

They are ordinary URLs: who may see one is shown ``********`` in place of key and secret, as in any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlencode

from pushhub.base.errors import Invalid

AWS_SCHEMES = ("sqs", "sns", "events", "lambda", "s3", "kinesis")
"""The schemes of subscribers on AWS."""

BATCHED_SCHEMES = frozenset({"s3", "kinesis"})
"""Those that take several messages in one request."""

ANY_ACCOUNT = "0" * 12
"""The account of what is named without one, as buckets are."""

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9]*)://(?:(?P<user>[^/?#@]*)@)?(?P<place>[^?#]*)(?:\?(?P<query>[^#]*))?"
)
_REGION = re.compile(r"[a-z]{2}(-[a-z]+){1,3}-[0-9]{1,2}")
_ACCOUNT = re.compile(r"[0-9]{12}")
_KEY_ID = re.compile(r"[A-Z0-9]{16,128}")
_SECRET = re.compile(r"[A-Za-z0-9/+=]{16,128}")
_ROLE = re.compile(r"arn:aws(?:-[a-z-]{1,20})?:iam::(?P<account>[0-9]{12}):role/[\w+=,.@/-]{1,512}", re.ASCII)
_MOST_OPTIONS = 10
_NAMED = ("role", "endpoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkUrl:
    """A subscriber on AWS.

    Attributes:
        scheme: Its kind, one of :data:`AWS_SCHEMES`.
        account: The account it is in, twelve digits.
        name: Its name there.
        key_id: The id of an access key; empty for none.
        secret: The secret of that key.
        role: The ARN of a role; empty for none.
        endpoint: Where its service is called; empty for AWS itself.
        options: Further options, which its kind knows.
    """

    scheme: str
    region: str
    account: str
    name: str
    key_id: str = ""
    secret: str = field(default="", repr=False)
    role: str = ""
    endpoint: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def partition(self) -> str:
        """The partition of AWS that the region belongs to."""
        if self.region.startswith("cn-"):
            return "aws-cn"
        return "aws-us-gov" if self.region.startswith("us-gov-") else "aws"

    @property
    def domain(self) -> str:
        """The domain of AWS's services in the region."""
        return "amazonaws.com.cn" if self.partition == "aws-cn" else "amazonaws.com"

    @property
    def text(self) -> str:
        """The URL."""
        user = f"{self.key_id}:{quote(self.secret, safe='')}@" if self.key_id else ""
        named = {"role": self.role, "endpoint": self.endpoint, **self.options}
        query = urlencode({name: value for name, value in named.items() if value}, safe=":/", quote_via=quote)
        return f"{self.scheme}://{user}{self.region}/{self.account}/{self.name}{'?' if query else ''}{query}"


def account_of(role: str) -> str:
    """The account of a role, given its ARN.

    Raises:
        Invalid: It is not the ARN of a role.
    """
    found = _ROLE.fullmatch(role)
    if found is None:
        raise Invalid("role must be the ARN of a role: arn:aws:iam::123456789012:role/NAME")
    return found["account"]


def parse_sink_url(url: str) -> SinkUrl:
    """Read the URL of a subscriber on AWS.

    Raises:
        Invalid: It is malformed. The error never repeats what may be secret.
    """
    found = _URL.fullmatch(url)
    if found is None or found["scheme"].lower() not in AWS_SCHEMES:
        raise Invalid(f"The url must be {AWS_SCHEMES[0]}://REGION/ACCOUNT/NAME, or the like with another scheme")
    scheme = found["scheme"].lower()
    region, _, rest = found["place"].partition("/")
    account, _, name = rest.partition("/")
    if _REGION.fullmatch(region) is None:
        raise Invalid(f"The url must begin with {scheme}:// and a region such as eu-west-1")
    if _ACCOUNT.fullmatch(account) is None:
        raise Invalid("An account of twelve digits must follow the region in the url")
    key_id, secret = _key(found["user"])
    given = _query(found["query"] or "")
    if given.get("role"):
        account_of(given["role"])
    return SinkUrl(
        scheme=scheme,
        region=region,
        account=account,
        name=name,
        key_id=key_id,
        secret=secret,
        role=given.get("role", ""),
        endpoint=given.get("endpoint", ""),
        options={each: value for each, value in given.items() if each not in _NAMED},
    )


def _key(user: str | None) -> tuple[str, str]:
    if user is None:
        return "", ""
    key_id, _, secret = user.partition(":")
    key_id, secret = unquote(key_id), unquote(secret)
    if _KEY_ID.fullmatch(key_id) is None or _SECRET.fullmatch(secret) is None:
        raise Invalid("An access key in the url is written KEY_ID:SECRET@, with %2F for a slash in the secret")
    return key_id, secret


def _query(query: str) -> dict[str, str]:
    if not query:
        return {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True, max_num_fields=_MOST_OPTIONS)
    except ValueError as error:
        raise Invalid("What follows ? in the url must be NAME=VALUE&NAME=VALUE") from error
    given = dict(pairs)
    if len(given) != len(pairs):
        raise Invalid("The url gives an option twice")
    if any(ord(each) < 0x20 or ord(each) == 0x7F or 0xD800 <= ord(each) < 0xE000 for each in "".join(given.values())):
        raise Invalid("An option of the url has control characters")
    return given
