// The frame around the views: which one is open, the service's clock, what comes in.

import { events, get } from "./api.js";
import { colour, h, put, say } from "./dom.js";
import { showClock, showFull, zone } from "./time.js";
import now from "./now.js";
import timeline from "./timeline.js";
import map from "./map.js";
import definition from "./definition.js";
import health from "./health.js";

const VIEWS = { now, timeline, map, definition, health };

// What all views share. Views listen for "told" (notifications), "changed" (the definition), "status".
class App extends EventTarget {
  definition = { text: "", topics: [], subscriptions: [] };
  status = null;
  user = { role: "see" };

  get names() { return this.definition.subscriptions.map((one) => one.name); }
  colour(name) { return colour(this.names, name); }
  may(what) { return { see: 0, acknowledge: 1, edit: 2 }[this.user.role] >= { acknowledge: 1, edit: 2 }[what]; }
  now() { return clock.at + (performance.now() - clock.seen) * 1000 * clock.speed; }
  tell(name, detail) { this.dispatchEvent(new CustomEvent(name, { detail })); }
  async learn() {
    this.definition = await get("/api/definition");
    this.tell("changed");
  }
}

const app = new App();

// The service's clock, which goes faster than ours in a demonstration.
const clock = { at: Date.now() * 1000, seen: performance.now(), speed: 1, known: false };

function heard(at) {
  const seen = performance.now();
  if (clock.known && seen - clock.seen > 500) {
    const speed = (at - clock.at) / ((seen - clock.seen) * 1000);
    clock.speed = Math.abs(speed - 1) < 0.2 ? 1 : speed;
  }
  Object.assign(clock, { at, seen, known: true });
}

async function look() {
  try {
    const status = await get("/api/status");
    heard(status.now);
    app.status = status;
    app.user = status.user;
    const troubles = [...Object.values(status.troubles), ...Object.values(status.part_troubles), ...status.damage.map((one) => `Damage in the log: ${one}`)];
    const trouble = document.getElementById("trouble");
    trouble.hidden = !troubles.length;
    put(trouble, `${status.takes_readings ? "" : "Readings are not acknowledged now: "}${troubles.join("; ")}`);
    linked(isLinked);
    app.tell("status");
  } catch (error) {
    linked(false);
  }
}

let isLinked = false;

// How the page stands: connected to the service, and the service to its feeds.
function linked(well) {
  isLinked = well;
  const link = document.getElementById("link"), lost = app.status ? app.status.feeds.filter((one) => !one.connected).length : 0;
  link.className = well && !lost ? "link good" : "link bad";
  put(link, !well ? "no connection" : lost ? `${lost} of ${app.status.feeds.length} feeds not connected` : "live");
}

async function follow() {
  let waiting = [];
  for await (const one of events(new AbortController().signal, linked)) {
    if (!waiting.length) setTimeout(() => { const some = waiting; waiting = []; app.tell("told", some); }, 100);
    waiting.push(one);
  }
}

// --- views ---

let close = null, shown = null;

function open() {
  const [name, query] = location.hash.slice(1).split("?");
  const view = VIEWS[name] ? name : "now";
  if (close) close();
  const main = put(document.getElementById("main"));
  main.className = `view-${view}`;
  for (const tab of document.querySelectorAll("#tabs a")) {
    tab.toggleAttribute("aria-current", tab.dataset.view === view);
    if (tab.dataset.view === view) tab.setAttribute("aria-current", "page");
  }
  document.title = `${VIEWS[view].title} · Holdfast`;
  close = VIEWS[view].open(main, app, new URLSearchParams(query || ""));
  if (shown !== null && shown !== view) main.focus({ preventScroll: true });
  shown = view;
}

function tabs() {
  put(document.getElementById("tabs"), Object.entries(VIEWS).map(([name, view], i) => {
    const tab = h("a", { href: `#${name}`, "aria-keyshortcuts": i + 1 },
      h("span", { class: "icon", "aria-hidden": "true" }, view.icon), h("span", {}, view.title));
    tab.dataset.view = name;
    return tab;
  }));
}

function onKey(event) {
  const typing = event.target.closest("input, textarea, select, .CodeMirror, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const view = Object.keys(VIEWS)[Number(event.key) - 1];
  if (view) location.hash = view;
  else if (event.key === "?") document.getElementById("help").showModal();
  else if (event.key === "/") {
    const find = document.querySelector("main input[type=search]");
    if (find) { event.preventDefault(); find.focus(); }
  }
}

function theme(next) {
  if (next) localStorage.setItem("theme", next);
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

async function begin() {
  theme();
  tabs();
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", open);
  document.getElementById("keys").addEventListener("click", () => document.getElementById("help").showModal());
  document.getElementById("theme").addEventListener("click", () => { theme(isDark() ? "light" : "dark"); open(); });
  const face = document.getElementById("clock");
  setInterval(() => {
    face.textContent = showClock(app.now());
    face.title = `${showFull(app.now())}, ${zone}`;
  }, 250);
  await look();
  await app.learn().catch((error) => say(error.message, "bad"));
  open();
  setInterval(look, 2000);
  follow();
}

begin();
