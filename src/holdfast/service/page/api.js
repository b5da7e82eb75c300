// Questions to the service, with the token that this tab was given.

export class Failed extends Error {
  constructor(status, body) {
    super(body.error || body.message || `the service answers ${status}`);
    this.status = status;
    this.body = body;
  }
}

let asking = null;

function askToken(why) {
  if (!asking) {
    asking = new Promise((resolve) => {
      const dialog = document.getElementById("token"), text = document.getElementById("token-text");
      document.getElementById("token-why").textContent = why;
      dialog.addEventListener("cancel", (event) => event.preventDefault());
      dialog.addEventListener("close", () => {
        sessionStorage.setItem("token", text.value.trim());
        text.value = "";
        asking = null;
        resolve();
      }, { once: true });
      dialog.showModal();
    });
  }
  return asking;
}

async function asked(method, path, { query, body, signal, accept } = {}) {
  const url = new URL(`.${path}`, document.baseURI);  // the page may stand under a path
  for (const [name, value] of Object.entries(query || {})) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
  }
  for (;;) {
    const headers = {};
    const token = sessionStorage.getItem("token");
    if (token) headers.authorization = `Bearer ${token}`;
    if (accept) headers.accept = accept;
    if (body !== undefined) headers["content-type"] = "application/json";
    const answer = await fetch(url, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
    if (answer.status === 401) {
      const { error } = await answer.json();
      await askToken(error);
      continue;
    }
    if (!answer.ok) throw new Failed(answer.status, await answer.json().catch(() => ({})));
    return answer;
  }
}

export const get = async (path, query, signal) => (await asked("GET", path, { query, signal })).json();
export const send = async (method, path, body) => (await asked(method, path, { body })).json();

// Notifications as they come; on a lost connection from the last one on.
export async function* events(signal, linked) {
  let after = null, wait = 500;
  while (!signal.aborted) {
    try {
      const answer = await asked("GET", "/api/events", { query: { after }, signal, accept: "text/event-stream" });
      linked(true);
      wait = 500;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) {
          const event = parsed(part);
          if (event.id) after = Number(event.id);
          if (event.data) yield { position: after, ...JSON.parse(event.data) };
        }
      }
    } catch (error) {
      if (signal.aborted) return;
    }
    linked(false);
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(wait * 2, 10000);
  }
}

function parsed(part) {
  const event = {};
  for (const line of part.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) event[line.slice(0, colon)] = line.slice(colon + 2);
  }
  return event;
}
