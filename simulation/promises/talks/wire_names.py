"""Where requests go: names, their addresses, and those that nobody's request may reach.

Sources: SECURITY.md ("What is promised, to whom"), docs/ironmq.md ("A queue"), docs/troubleshooting.md, docs/deploy.md
("AllowedTargets").
"""

from __future__ import annotations

from collections.abc import Sequence

from simulation.promises.talks.internet import Server, said
from simulation.promises.talks.talk import Talk
from simulation.promises.talks.tries import TIMEOUT_S, Tries, place, sound

INSIDE = {
    "private-10": "10.1.2.3",
    "private-172": "172.31.255.254",
    "private-192": "192.168.0.1",
    "loopback": "127.0.0.1",
    "loopback-other": "127.200.0.9",
    "this-host": "0.0.0.0",  # noqa: S104 (what a name may lead to)
    "shared": "100.64.0.1",
    "metadata": "169.254.169.254",
    "link-local": "169.254.0.9",
    "multicast": "224.0.0.1",
    "broadcast": "255.255.255.255",
    "loopback-6": "::1",
    "unspecified-6": "::",
    "mapped": "::ffff:10.1.2.3",
    "mapped-loopback": "::ffff:127.0.0.1",
    "unique-local": "fd12:3456::1",
    "metadata-6": "fd00:ec2::254",
    "link-local-6": "fe80::1",
    "nat64": "64:ff9b::a01:203",
    "six-to-four": "2002:a01:203::1",
    "teredo": "2001:0:a01:203::1",
    "multicast-6": "ff02::1",
    "first-of-10": "10.0.0.0",
    "last-of-10": "10.255.255.255",
    "first-of-172": "172.16.0.0",
    "last-of-192": "192.168.255.255",
    "last-shared": "100.127.255.255",
    "last-multicast": "239.255.255.255",
    "reserved": "240.0.0.1",
    "protocols": "192.0.0.8",
    "documentation": "192.0.2.1",
    "benchmarks": "198.19.255.255",
    "relay": "192.88.99.1",
    "first-unique-local": "fc00::1",
    "last-link-local": "febf::1",
    "site-local": "fec0::1",
    "documentation-6": "2001:db8::1",
    "local-nat64": "64:ff9b:1::a01:203",
    "not-given-out": "4000::1",
}
"""Addresses that are not public, in every form that a name may have, at both ends of their ranges."""

OUTSIDE = {
    "before-10": "9.255.255.254",
    "after-10": "11.0.0.1",
    "before-172": "172.15.255.254",
    "after-172": "172.32.0.1",
    "before-192": "192.167.255.254",
    "after-192": "192.169.0.1",
    "before-shared": "100.63.255.254",
    "after-shared": "100.128.0.1",
    "after-loopback": "128.0.0.1",
    "before-link-local": "169.253.255.254",
    "after-link-local": "169.255.0.1",
    "before-multicast": "223.255.255.254",
    "after-benchmarks": "198.20.0.1",
    "after-documentation-6": "2001:db9::1",
}
"""Public addresses beside those."""

PUBLIC_6 = "2600:1f18::5"

SPELLED = (
    *("http://10.1.2.3/", "http://127.0.0.1:9000/", "http://169.254.169.254/latest/meta-data/", "http://0.0.0.0/"),
    *("http://[::1]/", "http://[::ffff:10.1.2.3]/", "http://[fd00:ec2::254]/", "http://[fe80::1]/", "http://[::]/"),
    *("http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1/", "http://10.1.2.3./"),
    *("http://1.1.1.1@10.1.2.3/", "http://example.com\\@10.1.2.3/", "http://\uff11\uff10.1.2.3/"),
    *("ftp://a.example/", "http:///in", "http://a.example:99999/", "http://a b.example/", "http://a@b@c.example/"),
)
"""URLs of such addresses, however they are spelled, and some that are none."""


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_inside, _beside, _registered, _rebound, _opened, _unreachable, _several)


def _inside(talk: Talk) -> None:
    """Nothing is sent to a name that leads inside, whatever form the address has, and if only one of its addresses is
    such.
    """
    tries, servers, public = Tries(talk, "inside"), dict[str, Server](), talk.internet.address()
    outside = place(talk, "", [said()], address=public)
    names = {name: [address] for name, address in INSIDE.items()}
    for name in ("private-10", "metadata-6"):
        names |= {f"last-{name}": [public, INSIDE[name]], f"first-{name}": [INSIDE[name], public]}
    for name, address in INSIDE.items():
        servers[name] = place(talk, "", [said()], address=address)
    for name, addresses in names.items():
        # When it is registered, it is a public one's.
        _made_before(talk, tries, name, addresses)
        tries.post(name)
    talk.sleep(30 + talk.put_off_s)
    for name in names:
        tries.ended(name, error="refused_by_guard")
    for name, server in servers.items():
        talk.came(f"nobody came to {name}", 0, len(server.connected))
    talk.came("nobody came to the public address of such a name", 0, len(outside.connected))


def _beside(talk: Talk) -> None:
    """What is public is called, however near it is to what is not, by its name and by itself."""
    tries, servers = Tries(talk, "beside"), dict[str, Server]()
    for name, address in OUTSIDE.items():
        servers[name] = place(talk, f"{name}.beside.example", [said()], address=address)
        by_itself = f"[{address}]" if ":" in address else address
        for way, host in (("name", f"{name}.beside.example"), ("itself", by_itself)):
            tries.send(f"{name}-{way}", f"http://{host}/in")
    talk.sleep(30 + talk.put_off_s)
    for name, server in servers.items():
        for way in ("name", "itself"):
            tries.ended(f"{name}-{way}", status=200)
        talk.came(f"who came to {name}", 2, len(server.heard))


def _made_before(talk: Talk, tries: Tries, name: str, addresses: Sequence[str]) -> None:
    """A queue to a name that led elsewhere when it was made."""
    host, elsewhere = f"{name}.names.example", talk.internet.address()
    talk.internet.leads(host, lambda: [elsewhere])
    tries.make(name, f"http://{host}/in")
    talk.internet.leads(host, lambda: addresses)


def _registered(talk: Talk) -> None:
    """What leads inside cannot be a subscriber's URL, however it is spelled."""
    place(talk, "leads-inside.example", [said()], address="10.9.9.9")
    for url in (*SPELLED, "http://leads-inside.example/in"):
        push = {"subscribers": [{"name": "one", "url": url}]}
        talk.ask("PUT", "/queues/registered", {"queue": {"push": push}}, status=400)
    talk.ask("GET", "/queues/registered", status=404)


def _rebound(talk: Talk) -> None:
    """A name is looked up once for a try, so what was checked is what is called."""
    good, asked, tries = talk.internet.address(), list[str](), Tries(talk, "rebound")
    outside = place(talk, "", [said()], address=good)
    inside = place(talk, "", [said()], address="10.7.7.7")
    _made_before(talk, tries, "name", [good])

    def changes() -> list[str]:
        asked.append(good if not asked else "10.7.7.7")
        return asked[-1:]

    talk.internet.leads("name.names.example", changes)
    tries.post("name")
    talk.sleep(30 + talk.put_off_s)
    tries.ended("name", status=200)
    talk.came("looked up once", [good], asked)
    talk.came("who was called", (1, 0), (len(outside.heard), len(inside.connected)))


def _opened(talk: Talk) -> None:
    """An operator opens hosts to one project: to no other, and never those that give away credentials. A connection
    that one project has made is not another's.
    """
    allowed = ("10.5.0.0/16", "169.254.0.0/16", "named.names.example")
    [project] = talk.typed("projects", "make", "Opened", *(word for each in allowed for word in ("--allow", each)))
    other = talk.at(f"/3/projects/{project['project']}").with_headers(authorization=f"OAuth {project['token']}")
    addresses = {"opened": "10.5.0.7", "named": "192.168.7.7", "beside": "10.6.0.7", "metadata": "169.254.169.254"}
    servers = {name: place(talk, "", [said()], address=address) for name, address in addresses.items()}
    sides = Tries(other, "theirs"), Tries(talk, "own")
    for tries in sides:
        for name, address in addresses.items():
            _made_before(talk, tries, name, [address])
    for tries in sides:
        for name in addresses:
            tries.post(name)
        talk.sleep(20 + talk.put_off_s)
    theirs, own = sides
    for name in addresses:
        is_open = name in {"opened", "named"}
        theirs.ended(name, status=200 if is_open else 0, error="" if is_open else "refused_by_guard")
        own.ended(name, error="refused_by_guard")
        talk.came(f"who came to {name}", int(is_open), len(servers[name].heard))


def _unreachable(talk: Talk) -> None:
    """Why there is no answer is told: no such name, nobody who listens, or nobody who answers in time."""
    tries, silent = Tries(talk, "nowhere"), talk.internet.address()
    talk.internet.is_silent(silent)
    _made_before(talk, tries, "slow", [talk.internet.address()])
    talk.internet.is_slow("slow.names.example", 60)
    _made_before(talk, tries, "silent", [silent])
    _made_before(talk, tries, "closed", [talk.internet.address()])
    _made_before(talk, tries, "unknown", [])
    for name in ("slow", "silent", "closed", "unknown"):
        tries.post(name)
    talk.sleep(TIMEOUT_S + 20 + talk.put_off_s)
    for name in ("slow", "silent"):
        tries.ended(name, error="timeout", took_s=TIMEOUT_S)
    tries.ended("closed", error="connect")
    tries.ended("unknown", error="dns")


def _several(talk: Talk) -> None:
    """Of several addresses, one that does not answer leaves time for the next; IPv6 ones are like others."""
    internet, tries = talk.internet, Tries(talk, "several")
    silent, closed = internet.address(), internet.address()
    internet.is_silent(silent)
    address = {name: internet.address() for name in ("silent-first", "closed-first", "direct")}
    servers = {name: place(talk, "", [said()], address=at) for name, at in address.items()}
    six = place(talk, "six.example", [said()], address=PUBLIC_6)
    _made_before(talk, tries, "silent-first", [silent, address["silent-first"]])
    _made_before(talk, tries, "closed-first", [closed, address["closed-first"]])
    for name in ("silent-first", "closed-first"):
        tries.post(name)
    tries.send("six", "http://six.example/in")
    tries.send("direct", f"http://{address['direct']}/in")
    tries.send("direct-6", f"http://[{PUBLIC_6}]/in")
    talk.sleep(30 + talk.put_off_s)
    tries.ended("silent-first", status=200, took_s=TIMEOUT_S / 2)
    for name in ("closed-first", "six", "direct", "direct-6"):
        tries.ended(name, status=200)
    talk.came("each once", [1, 1, 1, 2], [len(each.heard) for each in (*servers.values(), six)])
    hosts = sorted(each.request.header("host") for each in six.heard)
    talk.came("as they were called", [f"[{PUBLIC_6}]", "six.example"], hosts)
    for name, server in {**servers, "six": six}.items():
        sound(talk, name, server)
