// Signing in with a project's token. It is shown to the hub at once, so that a wrong one is told here.
import { call, path, Refused } from "../http.js";
import { Form, Notice } from "../parts.js";
import { html, useEffect } from "../view.js";

const FIELDS = [
  { name: "project", label: "Project id", required: true, autocapitalize: "off" },
  { name: "token", label: "Token", type: "password", required: true, hint: "Kept in this tab only, until it is closed or you sign out." },
];

export function SignIn({ reason, onSignIn }) {
  useEffect(() => {
    document.title = "Sign in · Pushhub";
  }, []);
  const enter = async ({ project = "", token = "" }) => {
    const who = { kind: "project", project: project.trim(), token: token.trim() };
    try {
      await call("ironmq", "GET", `/3/projects/${path(who.project, "queues")}`, { query: { per_page: 1 }, who });
    } catch (error) {
      throw error.status === 401 ? new Refused(401, "No project has this id and token.") : error;
    }
    onSignIn(who);
  };
  return html`<main class="signin">
    <div class="card">
      <h1>Pushhub</h1>
      ${reason && html`<${Notice} kind="bad">${reason}<//>`}
      <${Form} fields=${FIELDS} submit="Sign in" onSubmit=${enter} />
      <p class="hint">On one machine <code>make status</code> says both; on AWS <code>pushhub projects make</code> and <code>pushhub tokens make</code> do.</p>
    </div>
  </main>`;
}
