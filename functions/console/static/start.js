// Loads the console, and loads the page again if a module of it did not come: without this, one lost answer leaves an empty page for good.
const KEY = "pushhub.starts";
const WAITS_MS = [500, 2000, 6000];

/** How often the page has been loaded again; the session's storage may be refused. */
function starts() {
  try {
    return Number(sessionStorage.getItem(KEY) ?? 0);
  } catch {
    return WAITS_MS.length;
  }
}

function remember(count) {
  try {
    if (count) sessionStorage.setItem(KEY, String(count));
    else sessionStorage.removeItem(KEY);
  } catch {
    // Then it is not counted, and not loaded again.
  }
}

function say(text) {
  const told = Object.assign(document.createElement("p"), { textContent: text, className: "starting" });
  told.setAttribute("role", "alert");
  document.getElementById("app").replaceChildren(told);
  return told;
}

async function start() {
  try {
    await import("./app.js");
    remember(0);
  } catch {
    const count = starts();
    if (count < WAITS_MS.length) {
      say("A part of the console did not load. The page is loaded again.");
      remember(count + 1);
      setTimeout(() => location.reload(), WAITS_MS[count]);
      return;
    }
    remember(0);
    const told = say("A part of the console did not load, several times in a row. Check your connection and whether the hub answers, then ");
    const again = Object.assign(document.createElement("button"), { type: "button", textContent: "Load the page again" });
    again.addEventListener("click", () => location.reload());
    told.append(again);
  }
}

start();
