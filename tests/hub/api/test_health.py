"""How the services of mappings are doing, in the words that every protocol has for it."""

from __future__ import annotations

from tests.hub.api.hub_store import Store

MAPPING = {"name": "acme.import", "url": "https://acme.example/import", "token": "t" * 32, "messages": ["order:new"]}


def test_mappings_say_how_their_services_are_doing_in_the_list_and_each_alone(store: Store) -> None:
    # Given a service that is well, one that fails, and one that is disabled
    urls = {name: f"https://{name}.example/in" for name in ("well", "down", "off")}
    ids = {}
    for name, url in urls.items():
        asked = {**MAPPING, "name": f"acme.{name}", "url": url, "enabled": name != "off"}
        ids[name] = store.call("POST", "/mappings", {"mapping": asked})[1]["id"]
        store.endpoints[url] = (lambda _: 503) if name == "down" else (lambda _: {})
    store.push_message()
    store.run(seconds=5)
    # When they are listed
    listed = {each["name"]: each["health"] for each in store.call("GET", "/mappings.json")[1]}
    # Then each has its state, with what waits for it
    assert {name: (each["state"], each["waiting"]) for name, each in listed.items()} == {
        "acme.well": ("delivering", 0),
        "acme.down": ("retrying", 1),
        "acme.off": ("disabled", 0),
    }
    # And its own page says the same, and what is made or changed says none
    for name, found in ids.items():
        assert store.call("GET", f"/mappings/{found}")[1]["health"] == listed[f"acme.{name}"]
    assert "health" not in store.call("PUT", f"/mappings/{ids['well']}", {"mapping": {"enabled": True}})[1]
