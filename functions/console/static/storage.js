// What a browser keeps for a page, where it may keep anything: in a frame of another site the stores themselves may throw.

/** A store by its name, `localStorage` or `sessionStorage`, that forgets everything where it is refused. */
function guarded(name) {
  const tried = (what) => {
    try {
      return what(window[name]);
    } catch {
      return null;
    }
  };
  return {
    get: (key) => tried((store) => store.getItem(key)),
    set: (key, text) => tried((store) => store.setItem(key, text)),
    remove: (key) => tried((store) => store.removeItem(key)),
  };
}

export const kept = guarded("localStorage");
export const keptInTab = guarded("sessionStorage");
