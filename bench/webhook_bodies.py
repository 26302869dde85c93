"""Bodies as well-known senders of webhooks make them, written anew from a seed.

The members, their order and their nesting, and whether a sender indents, are as its public documentation describes
them; every value is drawn. Nothing is copied from anybody's examples. What is measured with them is how well real
bodies compress, so values that have no pattern there (ids, signatures, hashes) have none here either.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

SEED = 53

FIRST = (
    *("Ada", "Björn", "Chiara", "Dmitri", "Elif", "Fatima", "Goran", "Hanna", "Ines", "Jan", "Kofi", "Lars", "Mei"),
    *("Noor", "Olga", "Pavel", "Quinn", "Rosa", "Sven", "Tariq", "Uma", "Vera", "Wout", "Xenia", "Yusuf", "Zoë"),
)
LAST = (
    *("Adeyemi", "Bauer", "Costa", "Dahl", "Eriksson", "Fischer", "García", "Haddad", "Ivanova", "Janssen", "Kowalski"),
    *("Lindqvist", "Moreau", "Nakamura", "Okafor", "Petrov", "Rossi", "Schmidt", "Tanaka", "Virtanen", "Weber"),
)
PLACES = (
    *(("Bergen", "NO", "5003"), ("Graz", "AT", "8010"), ("Porto", "PT", "4000-045"), ("Leeds", "GB", "LS1 4AP")),
    *(("Austin", "US", "78701"), ("Osaka", "JP", "530-0001"), ("Lyon", "FR", "69001"), ("Gdańsk", "PL", "80-001")),
)
WORDS = (
    *(
        "adapter",
        "autumn",
        "basket",
        "bolt",
        "cable",
        "candle",
        "cotton",
        "desk",
        "engine",
        "fabric",
        "filter",
        "glass",
    ),
    *("handle", "invoice", "kettle", "lamp", "linen", "meter", "notebook", "oak", "panel", "pump", "quilt", "release"),
    *("sensor", "shelf", "socket", "steel", "table", "timer", "travel", "valve", "winter", "wool", "wrench", "yarn"),
)


class Draw:
    """Values without a pattern, by a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def number(self, digits: int) -> int:
        """A number of so many digits."""
        return self._random.randrange(10 ** (digits - 1), 10**digits)

    def below(self, limit: int) -> int:
        """From 0."""
        return self._random.randrange(limit)

    def hex(self, digits: int) -> str:
        """Hexadecimal digits."""
        return f"{self._random.getrandbits(4 * digits):0{digits}x}"

    def key(self, length: int) -> str:
        """Letters and digits, as in an id."""
        letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        return "".join(self._random.choices(letters, k=length))

    def uuid(self) -> str:
        """As version 4 is written."""
        reported = self.hex(32)
        return f"{reported[:8]}-{reported[8:12]}-4{reported[13:16]}-a{reported[17:20]}-{reported[20:]}"

    def one(self, *of: Any) -> Any:
        """One of several."""
        return self._random.choice(of)

    def name(self) -> tuple[str, str]:
        """A person's."""
        return self.one(*FIRST), self.one(*LAST)

    def email(self) -> str:
        """A person's address."""
        first, last = self.name()
        domain = self.one("example.com", "example.org", f"{self.one(*WORDS)}.example")
        return f"{first}.{last}@{domain}".lower()

    def words(self, count: int) -> str:
        """A title or a sentence."""
        return " ".join(self._random.choices(WORDS, k=count)).capitalize()

    def amount(self) -> str:
        """Money."""
        return f"{self.number(self.one(1, 2, 3))}.{self.below(100):02d}"

    def moment(self) -> datetime:
        """Of the year 2026."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.below(31_000_000))

    def seconds(self) -> int:
        """The same since 1970."""
        return int(self.moment().timestamp())

    def time(self, form: str = "%Y-%m-%dT%H:%M:%SZ") -> str:
        """The same as text."""
        return self.moment().strftime(form)


def github(draw: Draw, parts: int) -> Any:
    """A push of so many commits."""
    owner, name = f"{draw.one(*WORDS)}-{draw.one(*WORDS)}", f"{draw.one(*WORDS)}-{draw.one(*WORDS)}"
    api, site = f"https://api.github.com/repos/{owner}/{name}", f"https://github.com/{owner}/{name}"
    first, last = draw.name()
    pusher = {"name": f"{first}{last}".lower(), "email": draw.email()}
    login = pusher["name"]
    user = {
        "login": login,
        "id": draw.number(8),
        "node_id": base64.b64encode(f"04:User{draw.number(8)}".encode()).decode(),
        "avatar_url": f"https://avatars.githubusercontent.com/u/{draw.number(8)}?v=4",
        "url": f"https://api.github.com/users/{login}",
        "html_url": f"https://github.com/{login}",
        "type": "User",
        "site_admin": False,
    }
    commits = [
        {
            "id": (commit := draw.hex(40)),
            "tree_id": draw.hex(40),
            "distinct": True,
            "message": draw.words(draw.one(4, 7, 12)),
            "timestamp": draw.time("%Y-%m-%dT%H:%M:%S+02:00"),
            "url": f"{site}/commit/{commit}",
            "author": {"name": f"{first} {last}", "email": pusher["email"], "username": login},
            "committer": {"name": f"{first} {last}", "email": pusher["email"], "username": login},
            "added": [f"src/{draw.one(*WORDS)}/{draw.one(*WORDS)}.py" for _ in range(draw.below(2))],
            "removed": [],
            "modified": [f"src/{draw.one(*WORDS)}/{draw.one(*WORDS)}.py" for _ in range(draw.below(4))],
        }
        for _ in range(parts)
    ]
    return {
        "ref": f"refs/heads/{draw.one('main', 'develop', draw.one(*WORDS))}",
        "before": draw.hex(40),
        "after": draw.hex(40),
        "repository": {
            "id": draw.number(9),
            "node_id": f"R_{draw.key(14)}",
            "name": name,
            "full_name": f"{owner}/{name}",
            "private": draw.one(True, False),
            "owner": user | {"login": owner},
            "html_url": site,
            "description": draw.words(6),
            "fork": False,
            "url": api,
            "branches_url": f"{api}/branches{{/branch}}",
            "commits_url": f"{api}/commits{{/sha}}",
            "created_at": draw.seconds(),
            "updated_at": draw.time(),
            "pushed_at": draw.seconds(),
            "clone_url": f"{site}.git",
            "size": draw.number(4),
            "stargazers_count": draw.below(900),
            "language": draw.one("Python", "Go", "TypeScript", None),
            "open_issues_count": draw.below(60),
            "visibility": "private",
            "default_branch": "main",
        },
        "pusher": pusher,
        "sender": user,
        "created": False,
        "deleted": False,
        "forced": False,
        "base_ref": None,
        "compare": f"{site}/compare/{draw.hex(12)}...{draw.hex(12)}",
        "commits": commits,
        "head_commit": commits[0] if commits else None,
    }


def stripe(draw: Draw, parts: int) -> Any:
    """An invoice with so many lines; without one, a charge."""
    charge, customer = f"ch_3{draw.key(23)}", f"cus_{draw.key(14)}"
    city, country, code = draw.one(*PLACES)
    amount = draw.number(5)
    about: dict[str, Any] = {
        "id": charge,
        "object": "charge",
        "amount": amount,
        "amount_captured": amount,
        "amount_refunded": 0,
        "balance_transaction": f"txn_3{draw.key(23)}",
        "billing_details": {
            "address": {
                "city": city,
                "country": country,
                "line1": f"{draw.words(1)} {draw.below(200)}",
                "line2": None,
                "postal_code": code,
                "state": None,
            },
            "email": draw.email(),
            "name": " ".join(draw.name()),
            "phone": None,
        },
        "captured": True,
        "created": draw.seconds(),
        "currency": draw.one("eur", "usd", "gbp"),
        "customer": customer,
        "description": draw.words(3),
        "disputed": False,
        "failure_code": None,
        "failure_message": None,
        "livemode": True,
        "metadata": {"order_id": str(draw.number(6))},
        "outcome": {
            "network_status": "approved_by_network",
            "reason": None,
            "risk_level": "normal",
            "risk_score": draw.below(60),
            "seller_message": "Payment complete.",
            "type": "authorized",
        },
        "paid": True,
        "payment_intent": f"pi_3{draw.key(23)}",
        "payment_method": f"pm_1{draw.key(23)}",
        "receipt_url": f"https://pay.stripe.com/receipts/payment/{draw.key(60)}",
        "refunded": False,
        "status": "succeeded",
    }
    if parts:
        about = {
            "id": f"in_1{draw.key(23)}",
            "object": "invoice",
            "amount_due": amount,
            "amount_paid": amount,
            "amount_remaining": 0,
            "attempt_count": 1,
            "attempted": True,
            "billing_reason": "subscription_cycle",
            "charge": charge,
            "currency": "eur",
            "customer": customer,
            "customer_email": draw.email(),
            "hosted_invoice_url": f"https://invoice.stripe.com/i/acct_1{draw.key(15)}/live_{draw.key(60)}",
            "lines": {
                "object": "list",
                "data": [
                    {
                        "id": f"il_1{draw.key(23)}",
                        "object": "line_item",
                        "amount": draw.number(4),
                        "currency": "eur",
                        "description": f"1 x {draw.words(3)} (at EUR {draw.amount()} / month)",
                        "discountable": True,
                        "livemode": True,
                        "metadata": {},
                        "period": {"end": draw.seconds(), "start": draw.seconds()},
                        "price": {
                            "id": f"price_1{draw.key(23)}",
                            "object": "price",
                            "product": f"prod_{draw.key(14)}",
                            "unit_amount": draw.number(4),
                        },
                        "proration": False,
                        "quantity": 1,
                        "subscription": f"sub_1{draw.key(23)}",
                    }
                    for _ in range(parts)
                ],
                "has_more": False,
                "total_count": parts,
            },
            "number": f"{draw.key(8).upper()}-{draw.number(4)}",
            "paid": True,
            "status": "paid",
            "total": amount,
        }
    return {
        "id": f"evt_1{draw.key(23)}",
        "object": "event",
        "api_version": "2025-06-30",
        "created": draw.seconds(),
        "data": {"object": about},
        "livemode": True,
        "pending_webhooks": 1,
        "request": {"id": f"req_{draw.key(14)}", "idempotency_key": draw.uuid()},
        "type": "invoice.paid" if parts else "charge.succeeded",
    }


def _shopify_money(draw: Draw) -> dict[str, Any]:
    amount = draw.amount()
    return {name: {"amount": amount, "currency_code": "EUR"} for name in ("shop_money", "presentment_money")}


def shopify(draw: Draw, parts: int) -> Any:
    """An order of so many lines; without one, a product that changed."""
    if not parts:
        return {
            "id": draw.number(13),
            "title": draw.words(3),
            "body_html": f"<p>{draw.words(12)}</p>",
            "vendor": draw.words(1),
            "product_type": draw.words(1),
            "created_at": draw.time("%Y-%m-%dT%H:%M:%S+02:00"),
            "handle": draw.words(3).lower().replace(" ", "-"),
            "updated_at": draw.time("%Y-%m-%dT%H:%M:%S+02:00"),
            "status": "active",
            "tags": draw.words(2),
            "admin_graphql_api_id": f"gid://shopify/Product/{draw.number(13)}",
        }
    first, last = draw.name()
    city, country, code = draw.one(*PLACES)
    address = {
        "first_name": first,
        "address1": f"{draw.words(1)} {draw.below(200)}",
        "phone": f"+49{draw.number(10)}",
        "city": city,
        "zip": code,
        "province": None,
        "country": country,
        "last_name": last,
        "address2": None,
        "company": None,
        "latitude": None,
        "longitude": None,
        "name": f"{first} {last}",
        "country_code": country,
        "province_code": None,
    }
    return {
        "id": draw.number(13),
        "admin_graphql_api_id": f"gid://shopify/Order/{draw.number(13)}",
        "browser_ip": None,
        "cart_token": draw.hex(32),
        "checkout_id": draw.number(13),
        "confirmed": True,
        "contact_email": draw.email(),
        "created_at": draw.time("%Y-%m-%dT%H:%M:%S+02:00"),
        "currency": "EUR",
        "current_subtotal_price": draw.amount(),
        "current_total_price_set": _shopify_money(draw),
        "discount_codes": [],
        "email": draw.email(),
        "financial_status": "paid",
        "fulfillment_status": None,
        "name": f"#{draw.number(5)}",
        "note": None,
        "note_attributes": [],
        "number": draw.number(4),
        "order_number": draw.number(5),
        "order_status_url": f"https://{draw.one(*WORDS)}.myshopify.com/{draw.number(8)}/orders/{draw.hex(32)}",
        "payment_gateway_names": ["shopify_payments"],
        "phone": None,
        "processed_at": draw.time("%Y-%m-%dT%H:%M:%S+02:00"),
        "source_name": "web",
        "subtotal_price": draw.amount(),
        "tags": "",
        "taxes_included": True,
        "test": False,
        "total_price": draw.amount(),
        "updated_at": draw.time("%Y-%m-%dT%H:%M:%S+02:00"),
        "billing_address": address,
        "line_items": [
            {
                "id": draw.number(14),
                "admin_graphql_api_id": f"gid://shopify/LineItem/{draw.number(14)}",
                "fulfillable_quantity": 1,
                "fulfillment_service": "manual",
                "fulfillment_status": None,
                "gift_card": False,
                "grams": draw.number(3),
                "name": draw.words(3),
                "price": draw.amount(),
                "price_set": _shopify_money(draw),
                "product_exists": True,
                "product_id": draw.number(13),
                "properties": [],
                "quantity": 1,
                "requires_shipping": True,
                "sku": draw.key(8).upper(),
                "taxable": True,
                "title": draw.words(3),
                "total_discount": "0.00",
                "variant_id": draw.number(14),
                "vendor": draw.words(1),
                "tax_lines": [],
            }
            for _ in range(parts)
        ],
        "shipping_address": address,
    }


def slack(draw: Draw, parts: int) -> Any:
    """A message of so many parts of rich text."""
    text = draw.words(3 + 6 * parts)
    team, user, channel = (f"{kind}{draw.key(10).upper()}" for kind in "TUC")
    at = f"{draw.seconds()}.{draw.number(6)}"
    sections = [{"type": "text", "text": draw.words(8)} for _ in range(parts + 1)]
    return {
        "token": draw.key(24),
        "team_id": team,
        "context_team_id": team,
        "context_enterprise_id": None,
        "api_app_id": f"A{draw.key(10).upper()}",
        "event": {
            "user": user,
            "type": "message",
            "ts": at,
            "client_msg_id": draw.uuid(),
            "text": text,
            "team": team,
            "blocks": [
                {
                    "type": "rich_text",
                    "block_id": draw.key(5),
                    "elements": [{"type": "rich_text_section", "elements": sections}],
                }
            ],
            "channel": channel,
            "event_ts": at,
            "channel_type": "channel",
        },
        "type": "event_callback",
        "event_id": f"Ev{draw.key(10).upper()}",
        "event_time": draw.seconds(),
        "authorizations": [
            {"enterprise_id": None, "team_id": team, "user_id": user, "is_bot": True, "is_enterprise_install": False}
        ],
        "is_ext_shared_channel": False,
        "event_context": f"4-{draw.key(100)}",
    }


def twilio(draw: Draw, parts: int) -> Any:
    """A message that came in, as a form, with so many pictures."""
    account, message = f"AC{draw.hex(32)}", f"SM{draw.hex(32)}"
    city, country, code = draw.one(*PLACES)
    media = {}
    for number in range(parts):
        media[f"MediaContentType{number}"] = "image/jpeg"
        media[f"MediaUrl{number}"] = (
            f"https://api.twilio.com/2010-04-01/Accounts/{account}/Messages/{message}/Media/ME{draw.hex(32)}"
        )
    return urlencode(
        {
            "ToCountry": country,
            "ToState": "",
            "SmsMessageSid": message,
            "NumMedia": parts,
            "ToCity": city,
            "FromZip": code,
            "SmsSid": message,
            "FromState": "",
            "SmsStatus": "received",
            "FromCity": city,
            "Body": draw.words(9),
            "FromCountry": country,
            "To": f"+44{draw.number(10)}",
            "MessagingServiceSid": f"MG{draw.hex(32)}",
            "ToZip": "",
            "NumSegments": 1,
            "MessageSid": message,
            "AccountSid": account,
            "From": f"+44{draw.number(10)}",
            "ApiVersion": "2010-04-01",
            **media,
        }
    )


def hubspot(draw: Draw, parts: int) -> Any:
    """So many changes of contacts."""
    portal, app = draw.number(8), draw.number(7)
    return [
        {
            "eventId": draw.number(10),
            "subscriptionId": draw.number(7),
            "portalId": portal,
            "appId": app,
            "occurredAt": draw.seconds() * 1000 + draw.below(1000),
            "subscriptionType": "contact.propertyChange",
            "attemptNumber": 0,
            "objectId": draw.number(10),
            "propertyName": draw.one("email", "firstname", "lifecyclestage", "phone", "hs_lead_status"),
            "propertyValue": draw.one(draw.email(), draw.words(1), "customer", f"+49{draw.number(10)}"),
            "changeSource": draw.one("CRM_UI", "API", "IMPORT"),
            "sourceId": f"userId:{draw.number(8)}",
        }
        for _ in range(parts + 1)
    ]


def standard(draw: Draw, parts: int) -> Any:
    """An event of a service that follows Standard Webhooks, with so many items."""
    return {
        "type": draw.one("order.paid", "user.created", "invoice.overdue"),
        "timestamp": draw.time("%Y-%m-%dT%H:%M:%S.%fZ"),
        "data": {
            "id": f"ord_{draw.key(22)}",
            "customer": {"id": f"usr_{draw.key(22)}", "email": draw.email(), "name": " ".join(draw.name())},
            "total": {"amount": draw.amount(), "currency": draw.one("EUR", "USD")},
            "items": [
                {"sku": draw.key(10).upper(), "title": draw.words(3), "quantity": draw.below(9), "price": draw.amount()}
                for _ in range(parts)
            ],
        },
    }


def sendgrid(draw: Draw, parts: int) -> Any:
    """So many events of mail."""
    return [
        {
            "email": draw.email(),
            "timestamp": draw.seconds(),
            "smtp-id": f"<{draw.key(22)}@geopod-ismtpd-{draw.below(30)}>",
            "event": draw.one("processed", "delivered", "open", "click"),
            "category": [draw.one(*WORDS)],
            "sg_event_id": draw.key(22),
            "sg_message_id": f"{draw.key(22)}.recvd-{draw.key(9)}-{draw.key(5)}-1-{draw.hex(8).upper()}.0",
            "useragent": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)",
            "ip": f"203.0.113.{draw.below(256)}",
            "response": "250 OK",
        }
        for _ in range(parts + 1)
    ]


def zoom(draw: Draw, parts: int) -> Any:
    """A meeting's end; with parts, a recording of so many files."""
    uuid, meeting = base64.b64encode(bytes.fromhex(draw.hex(32))).decode(), draw.number(11)
    about: dict[str, Any] = {
        "uuid": uuid,
        "id": meeting,
        "account_id": draw.key(22),
        "host_id": draw.key(22),
        "topic": draw.words(4),
        "type": 2,
        "start_time": draw.time(),
        "timezone": draw.one("Europe/Berlin", "America/Chicago", "Asia/Tokyo"),
        "duration": draw.below(90),
    }
    if parts:
        about |= {
            "host_email": draw.email(),
            "total_size": draw.number(8),
            "recording_count": parts,
            "share_url": f"https://zoom.us/rec/share/{draw.key(60)}",
            "recording_files": [
                {
                    "id": draw.uuid(),
                    "meeting_id": uuid,
                    "recording_start": draw.time(),
                    "recording_end": draw.time(),
                    "file_type": draw.one("MP4", "M4A", "CHAT"),
                    "file_size": draw.number(7),
                    "file_extension": "MP4",
                    "play_url": f"https://zoom.us/rec/play/{draw.key(60)}",
                    "download_url": f"https://zoom.us/rec/download/{draw.key(60)}",
                    "status": "completed",
                    "recording_type": "shared_screen_with_speaker_view",
                }
                for _ in range(parts)
            ],
        }
    return {
        "event": "recording.completed" if parts else "meeting.ended",
        "payload": {"account_id": about["account_id"], "object": about},
        "event_ts": draw.seconds() * 1000,
    }


def gitlab(draw: Draw, parts: int) -> Any:
    """A push of so many commits."""
    group, name = draw.one(*WORDS), f"{draw.one(*WORDS)}-{draw.one(*WORDS)}"
    site = f"https://gitlab.example.com/{group}/{name}"
    first, last = draw.name()
    email = draw.email()
    return {
        "object_kind": "push",
        "event_name": "push",
        "before": draw.hex(40),
        "after": (after := draw.hex(40)),
        "ref": "refs/heads/main",
        "ref_protected": True,
        "checkout_sha": after,
        "message": None,
        "user_id": draw.number(5),
        "user_name": f"{first} {last}",
        "user_username": f"{first}{last}".lower(),
        "user_email": "",
        "user_avatar": f"https://secure.gravatar.com/avatar/{draw.hex(64)}?s=80&d=identicon",
        "project_id": draw.number(5),
        "project": {
            "id": draw.number(5),
            "name": name,
            "description": draw.words(5),
            "web_url": site,
            "avatar_url": None,
            "git_ssh_url": f"git@gitlab.example.com:{group}/{name}.git",
            "git_http_url": f"{site}.git",
            "namespace": group,
            "visibility_level": 0,
            "path_with_namespace": f"{group}/{name}",
            "default_branch": "main",
            "ci_config_path": None,
            "homepage": site,
            "url": f"git@gitlab.example.com:{group}/{name}.git",
        },
        "commits": [
            {
                "id": (commit := draw.hex(40)),
                "message": draw.words(draw.one(4, 9)),
                "title": draw.words(4),
                "timestamp": draw.time("%Y-%m-%dT%H:%M:%S+00:00"),
                "url": f"{site}/-/commit/{commit}",
                "author": {"name": f"{first} {last}", "email": email},
                "added": [],
                "modified": [f"app/{draw.one(*WORDS)}/{draw.one(*WORDS)}.rb" for _ in range(draw.below(4))],
                "removed": [],
            }
            for _ in range(parts)
        ],
        "total_commits_count": parts,
        "push_options": {},
    }


def paypal(draw: Draw, parts: int) -> Any:
    """A capture; with parts, an order of so many items."""
    event, capture = f"WH-{draw.key(17).upper()}-{draw.key(17).upper()}", draw.key(17).upper()
    value = draw.amount()
    api = "https://api.paypal.com"
    resource: dict[str, Any] = {
        "id": capture,
        "status": "COMPLETED",
        "amount": {"currency_code": "EUR", "value": value},
        "final_capture": True,
        "seller_protection": {
            "status": "ELIGIBLE",
            "dispute_categories": ["ITEM_NOT_RECEIVED", "UNAUTHORIZED_TRANSACTION"],
        },
        "seller_receivable_breakdown": {
            "gross_amount": {"currency_code": "EUR", "value": value},
            "paypal_fee": {"currency_code": "EUR", "value": draw.amount()},
            "net_amount": {"currency_code": "EUR", "value": draw.amount()},
        },
        "links": [
            {"href": f"{api}/v2/payments/captures/{capture}", "rel": "self", "method": "GET"},
            {"href": f"{api}/v2/payments/captures/{capture}/refund", "rel": "refund", "method": "POST"},
        ],
        "create_time": draw.time(),
        "update_time": draw.time(),
    }
    if parts:
        resource["purchase_units"] = [
            {
                "reference_id": "default",
                "items": [
                    {
                        "name": draw.words(3),
                        "unit_amount": {"currency_code": "EUR", "value": draw.amount()},
                        "quantity": str(draw.below(9)),
                        "sku": draw.key(8).upper(),
                        "category": "PHYSICAL_GOODS",
                    }
                    for _ in range(parts)
                ],
            }
        ]
    return {
        "id": event,
        "event_version": "1.0",
        "create_time": draw.time("%Y-%m-%dT%H:%M:%S.000Z"),
        "resource_type": "checkout-order" if parts else "capture",
        "resource_version": "2.0",
        "event_type": "CHECKOUT.ORDER.APPROVED" if parts else "PAYMENT.CAPTURE.COMPLETED",
        "summary": f"Payment completed for EUR {value} EUR",
        "resource": resource,
        "links": [
            {"href": f"{api}/v1/notifications/webhooks-events/{event}", "rel": "self", "method": "GET"},
            {"href": f"{api}/v1/notifications/webhooks-events/{event}/resend", "rel": "resend", "method": "POST"},
        ],
    }


def cloud_event(draw: Draw, parts: int) -> Any:
    """A CloudEvent of machines, with so many readings."""
    return {
        "specversion": "1.0",
        "id": draw.uuid(),
        "source": f"/plants/{draw.one(*WORDS)}/lines/{draw.below(20)}",
        "type": "com.example.machine.measured",
        "datacontenttype": "application/json",
        "time": draw.time("%Y-%m-%dT%H:%M:%S.%fZ"),
        "subject": f"machine-{draw.number(5)}",
        "data": {
            "readings": [
                {
                    "sensor": f"{draw.one(*WORDS)}-{draw.below(40)}",
                    "at": draw.time(),
                    "value": draw.number(5) / 100,
                    "unit": draw.one("bar", "K", "rpm", "mm/s"),
                }
                for _ in range(parts + 1)
            ]
        },
    }


Shape = Callable[[Draw, int], Any]
SENDERS: Mapping[str, Shape] = {
    "github": github,
    "stripe": stripe,
    "shopify": shopify,
    "slack": slack,
    "twilio": twilio,
    "hubspot": hubspot,
    "standard": standard,
    "sendgrid": sendgrid,
    "zoom": zoom,
    "gitlab": gitlab,
    "paypal": paypal,
    "cloud_event": cloud_event,
}
"""What draws a body of each sender, of so many parts."""

INDENTED = frozenset({"stripe"})
"""Senders that indent."""

EACH = 20
MOST_PARTS = 8


@dataclass(frozen=True, slots=True)
class Body:
    """A body, and whose it is."""

    sender: str
    content: bytes


def body(sender: str, draw: Draw, parts: int) -> Body:
    """One of a sender, of so many parts."""
    found = SENDERS[sender](draw, parts)
    if isinstance(found, str):
        return Body(sender, found.encode())
    indented = {"indent": 2} if sender in INDENTED else {"separators": (",", ":")}
    # Half of the senders write other letters as escapes.
    escaped = sender in {"slack", "github", "sendgrid", "stripe", "paypal", "zoom"}
    return Body(sender, json.dumps(found, ensure_ascii=escaped, **indented).encode())


def corpus(seed: int = SEED, each: int = EACH) -> list[Body]:
    """So many bodies of each sender, from none to many parts."""
    draw = Draw(seed)
    return [body(sender, draw, number * MOST_PARTS // each) for sender in SENDERS for number in range(each)]


def about(size: int, count: int, seed: int = SEED) -> Iterator[Body]:
    """Bodies of all senders in turn, each of the number of parts with which it comes nearest to a size in bytes.

    A sender whose smallest body is more than half as large again, or whose largest is less than half, is passed over.
    """
    draw = Draw(seed)
    parts = {sender: min(range(80), key=lambda number: abs(_mean(sender, number) - size)) for sender in SENDERS}
    fitting = [sender for sender in SENDERS if size / 1.5 < _mean(sender, parts[sender]) < size * 1.5]
    for number in range(count):
        sender = fitting[number % len(fitting)]
        yield body(sender, draw, parts[sender])


def _mean(sender: str, parts: int) -> float:
    draw = Draw(parts)
    return sum(len(body(sender, draw, parts).content) for _ in range(3)) / 3
