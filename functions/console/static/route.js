// Addresses of pages: everything after #/ in segments of any text, so that each thing has a link and none of it reaches a log.

/** The link of a page: href("queues", name, "messages", id). A last object is the query. */
export function href(...segments) {
  const query = typeof segments.at(-1) === "object" ? segments.pop() : {};
  const given = Object.entries(query).filter(([, value]) => value);
  return `#/${segments.map((each) => encodeURIComponent(each)).join("/")}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

/** Go to a page. */
export function go(...segments) {
  location.hash = href(...segments);
}

/** Where the address leads: {address, segments, query}. */
export function currentRoute() {
  const text = location.hash.startsWith("#/") ? location.hash.slice(2) : "";
  const [path, query = ""] = text.split("?", 2);
  const segments = path.split("/").filter(Boolean).map((each) => {
    try {
      return decodeURIComponent(each);
    } catch {
      return each;
    }
  });
  return { address: `#/${text}`, segments, query: Object.fromEntries(new URLSearchParams(query)) };
}
