// A provider's own page that shows the portal with Svix's component, as its documentation says.
import React from "react";
import { createRoot } from "react-dom/client";
import { AppPortal } from "svix-react";
import "svix-react/style.css";

createRoot(document.getElementById("root")).render(<AppPortal {...JSON.parse(document.getElementById("props").textContent)} />);
