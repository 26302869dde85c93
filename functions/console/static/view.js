// The library, in one place: Preact and htm. Text is always set as text; no page makes markup of a string.
import htm from "./vendor/htm.js";
import { Fragment, h, render } from "./vendor/preact.js";

export { useCallback, useEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export { Fragment, render };
export const html = htm.bind(h);
