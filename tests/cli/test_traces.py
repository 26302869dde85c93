"""The export of spans, against a hub on fakes."""

from __future__ import annotations

from tests.cli.conftest import Typed
from tests.cli.served_hub import ServedHub

COLLECTOR = "https://otel.example/v1/traces"


def test_the_export_of_spans_is_set_shown_switched_off_and_stopped(hub: ServedHub, typed: Typed) -> None:
    assert typed.json("traces", "show") == []
    [created] = typed.json("traces", "export", COLLECTOR, "-H", "x-key=s3cret=1")
    assert created == {"url": COLLECTOR, "on": True, "exported": 0, "dropped": 0, "failing": None}
    world = hub.worlds["ironmq"].world
    exports = [world.config.span_export(each.project_id) for each in world.config.projects()]
    assert [each.headers for each in exports if each] == [{"x-key": "********"}]
    [off] = typed.json("traces", "export", COLLECTOR, "--off")
    assert off["on"] is False
    assert typed.json("traces", "show") == [off]
    typed("traces", "stop")
    assert typed.json("traces", "show") == []
    # And what cannot be is said, without what may open something
    typed("traces", "export", COLLECTOR, "-H", "s3cret", code=2)
    assert "s3cret" not in typed.errors
    typed("traces", "export", "ftp://otel.example", code=1)
