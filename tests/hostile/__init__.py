"""Subscribers that misbehave in every way a socket allows, for tests of whatever has to survive them."""

from tests.hostile.behaviours import BEHAVIOURS
from tests.hostile.certificates import Authority
from tests.hostile.endpoint import HostileEndpoint, Peer, Received, unaccepting_port

__all__ = ["BEHAVIOURS", "Authority", "HostileEndpoint", "Peer", "Received", "unaccepting_port"]
