// What holds now, what is unknown, who is silent; and what was told last.

import { get, send } from "./api.js";
import { calm, h, put, say } from "./dom.js";
import { HOUR, instant, showFull, showLength, showTime } from "./time.js";

const RECENT = 60;

export default {
  title: "Now",
  icon: "◉",
  open(main, app) {
    let conditions = [], quiet = { total: 0, silent: 0, sources: [] }, recent = [], only = null, closed = false;
    const find = h("input", { type: "search", placeholder: "Find", "aria-label": "Find", oninput: draw });
    const tiles = h("div", { class: "tiles" }), chips = h("div", { class: "chips", role: "group", "aria-label": "Subscriptions" });
    const list = h("div", { class: "conditions" }), silent = h("div"), feed = h("ol", { class: "feed" });
    main.append(
      h("h1", { class: "sr" }, "What holds now"), tiles,
      h("div", { class: "columns" },
        h("section", { class: "card wide" }, h("div", { class: "bar" }, h("h2", {}, "Conditions"), find), chips, list, silent),
        h("section", { class: "card" }, h("h2", {}, "Told lately"), feed)));

    async function look() {
      try {
        [conditions, quiet] = await Promise.all([get("/api/conditions"), get("/api/sources", { most: 30 })]);
        if (!closed) draw();
      } catch (error) { say(error.message, "bad"); }
    }
    const soon = calm(150, look);

    async function past() {
      const last = app.status ? app.status.notifications : 0;
      const found = await get("/api/notifications", { after: Math.max(0, last - RECENT) });
      recent = found.notifications.reverse();
      draw();
    }

    function draw() {
      const held = conditions.filter((one) => one.since !== null && one.unknown === null);
      const unsure = conditions.filter((one) => one.unknown !== null);
      const open = held.filter((one) => !one.acknowledged && !one.muted);
      put(tiles,
        tile(held.length, held.length === 1 ? "condition holds" : "conditions hold", held.length ? "on" : "off"),
        tile(open.length, "nobody has acknowledged", open.length ? "warn" : "off"),
        tile(unsure.length, "unknown", unsure.length ? "unsure" : "off"),
        tile(quiet.silent, quiet.silent === 1 ? "source is silent" : "sources are silent", quiet.silent ? "unsure" : "off"),
        feedTile(app.status ? app.status.feeds : []));
      drawChips();
      const wanted = conditions.filter((one) => (only === null || one.subscription === only)
        && `${one.subscription} ${one.scope || ""}`.toLowerCase().includes(find.value.toLowerCase()));
      put(list, wanted.length ? groups(wanted) : h("p", { class: "empty" },
        conditions.length ? "Nothing that holds matches." : "Nothing holds. What starts appears here by itself."));
      put(silent, quiet.silent ? [h("h3", {}, "Silent longer than they used to be"),
        h("ul", { class: "plain" }, quiet.sources.filter((one) => one.silent).map((one) => h("li", {},
          h("b", {}, one.source), ` (${one.topic}) has said nothing for ${showLength(app.now() - one.last)}; it used to speak every ${showLength(one.pause)}`)))] : null);
      put(feed, recent.length ? recent.slice(0, RECENT).map((one) => told(one, app)) : h("li", { class: "empty" }, "Nothing was told yet."));
    }

    function drawChips() {
      const counts = new Map(app.names.map((name) => [name, 0]));
      for (const one of conditions) counts.set(one.subscription, (counts.get(one.subscription) || 0) + 1);
      const chip = (name, text, count) => h("button", {
        type: "button", class: "chip", "data-name": text, "aria-pressed": only === name, onclick: () => { only = only === name ? null : name; draw(); },
      }, name && h("i", { class: "dot", style: { "--is": app.colour(name) } }), text, h("span", { class: "count" }, count));
      put(chips, chip(null, "all", conditions.length), [...counts].map(([name, count]) => chip(name, name, count)));
    }

    function groups(wanted) {
      const by = Map.groupBy ? Map.groupBy(wanted, (one) => one.subscription) : grouped(wanted);
      return [...by].map(([name, some]) => h("div", { class: "group" },
        h("h3", {}, h("i", { class: "dot", style: { "--is": app.colour(name) } }), name),
        h("table", { class: "rows" },
          h("thead", { class: "sr" }, h("tr", {}, ["Scope", "Since", "For", "Actions"].map((one) => h("th", { scope: "col" }, one)))),
          h("tbody", {}, some.sort((a, b) => (b.since || "").localeCompare(a.since || "")).map(row)))));
    }

    function row(one) {
      const since = instant(one.since);
      const where = new URLSearchParams({ subscription: one.subscription, scope: one.scope === null ? "" : one.scope, all: one.scope === null ? 1 : "" });
      return h("tr", { class: one.unknown ? "unsure" : one.acknowledged || one.muted ? "calm" : "" },
        h("td", {}, h("a", { href: `#timeline?${where}` }, one.scope === null ? "everything" : one.scope),
          one.level && h("span", { class: "badge level" }, one.level),
          one.unknown && h("span", { class: "badge unsure" }, `unknown since ${showTime(instant(one.unknown), app.now())}`),
          one.acknowledged && h("span", { class: "badge", title: one.acknowledged.note || "" }, `seen by ${one.acknowledged.who}`),
          one.muted && h("span", { class: "badge" }, one.muted.until ? `muted until ${showTime(instant(one.muted.until), app.now())}` : "muted")),
        h("td", { class: "since" }, since === null ? "did not hold" : h("time", { datetime: one.since, title: showFull(since) }, showTime(since, app.now()))),
        h("td", { class: "num length", "data-since": since }, since === null ? "" : showLength(app.now() - since)),
        h("td", { class: "actions" }, app.may("acknowledge") && [
          mark(one, "acknowledge", one.acknowledged ? "Unsee" : "Acknowledge", one.acknowledged),
          mark(one, "mute", one.muted ? "Unmute" : "Mute 1 h", one.muted)]));
    }

    function mark(one, kind, text, is) {
      return h("button", {
        type: "button", class: "small", "data-name": `${kind} ${one.subscription} ${one.scope}`, "aria-label": `${text}: ${one.subscription} ${one.scope || ""}`,
        onclick: async () => {
          try {
            const body = { subscription: one.subscription, scope: one.scope };
            if (kind === "mute" && !is) body.seconds = HOUR / 1e6;
            await send(is ? "DELETE" : "POST", `/api/${kind}`, body);
            await look();
          } catch (error) { say(error.message, "bad"); }
        },
      }, text);
    }

    const onTold = ({ detail }) => {
      recent = [...detail.slice().reverse(), ...recent].slice(0, RECENT);
      soon();
    };
    app.addEventListener("told", onTold);
    app.addEventListener("changed", soon);
    app.addEventListener("status", draw);
    const timer = setInterval(draw, 5000);
    const second = setInterval(() => {
      for (const one of list.querySelectorAll("[data-since]")) one.textContent = showLength(app.now() - Number(one.dataset.since));
    }, 1000);
    const slow = setInterval(look, 15000);
    look();
    past().catch((error) => say(error.message, "bad"));
    return () => {
      closed = true;
      clearInterval(timer);
      clearInterval(second);
      clearInterval(slow);
      app.removeEventListener("told", onTold);
      app.removeEventListener("changed", soon);
      app.removeEventListener("status", draw);
    };
  },
};

function grouped(wanted) {
  const by = new Map();
  for (const one of wanted) by.set(one.subscription, [...(by.get(one.subscription) || []), one]);
  return by;
}

// How many feeds bring readings: a green zero beside a lost broker says nothing.
function feedTile(feeds) {
  const well = feeds.filter((one) => one.connected && !one.trouble).length;
  return feeds.length ? h("div", { class: `tile ${well < feeds.length ? "warn" : "off"}` },
    h("b", {}, `${well} of ${feeds.length}`), h("span", {}, feeds.length === 1 ? "feed is connected" : "feeds are connected")) : null;
}

function tile(count, text, kind) {
  return h("div", { class: `tile ${kind}` }, h("b", {}, count.toLocaleString()), h("span", {}, text));
}

const WORDS = { ingress: "starts", egress: "ends", atomic: "happens", unknown: "is unknown", withdrawn: "is withdrawn", retracted: "did not start", reopened: "did not end" };

function word(one) {
  const holds = one.since !== null;
  if (one.status === "raised" || one.status === "lowered") return `is ${one.status} to ${one.attributes.level}`;
  if (one.status === "revised") return holds ? "holds by another definition" : "ends by another definition";
  if (one.status === "known") return holds ? "is known to hold" : "is known not to hold";
  return WORDS[one.status] || one.status;
}

function lasted(one, at, since, app) {
  if (since === null || one.status === "ingress") return "";
  return one.status === "known" ? `, since ${showTime(since, app.now())}` : `, after ${showLength(at - since)}`;
}

export function told(one, app) {
  const at = instant(one.time), since = instant(one.since);
  const values = Object.entries(one.attributes || {}).filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${typeof value === "number" ? Number(value.toPrecision(6)) : value}`).join(", ");
  return h("li", { class: `told ${one.status}` },
    h("i", { class: "dot", style: { "--is": app.colour(one.subscription) } }),
    h("div", {},
      h("div", {}, h("b", {}, one.subscription), ` ${word(one)}`, one.scope === null ? "" : " in ", one.scope !== null && h("b", {}, one.scope)),
      h("small", {}, h("time", { datetime: one.time, title: showFull(at) }, showTime(at, app.now())),
        lasted(one, at, since, app), values && ` · ${values}`)));
}
