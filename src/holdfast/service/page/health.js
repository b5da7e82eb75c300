// How the service stands: rates, lag, what was late or refused, feeds and sinks.

import { get, send } from "./api.js";
import { h, painted, put, say } from "./dom.js";
import { showFull, showLength } from "./time.js";

const KEPT = 150;
const past = [];

export default {
  title: "Health",
  icon: "♥",
  open(main, app) {
    const tiles = h("div", { class: "tiles" }), rate = h("div", { class: "chart" });
    const feeds = h("div"), sinks = h("div"), reasons = h("div"), rejects = h("div"), letters = h("div"), topics = h("div"), damage = h("div");
    main.append(h("h1", { class: "sr" }, "Health"), tiles,
      h("div", { class: "columns even" },
        h("section", { class: "card" }, h("h2", {}, "Readings a second"), rate),
        h("section", { class: "card" }, h("h2", {}, "Topics"), topics)),
      h("div", { class: "columns even" },
        h("section", { class: "card" }, h("h2", {}, "In"), feeds),
        h("section", { class: "card" }, h("h2", {}, "Out"), sinks)),
      damage,
      h("section", { class: "card" }, h("h2", {}, "What came and is no reading"), reasons, rejects),
      h("section", { class: "card" }, h("h2", {}, "What sinks refused"), letters));
    let plot = null;

    function draw() {
      const it = app.status;
      if (!it) return;
      const last = past[past.length - 1];
      if (!last || it.now !== last.now) past.push({ now: it.now, seen: performance.now(), readings: it.readings });
      if (past.length > KEPT) past.shift();
      const [before, after] = past.slice(-2);
      const speed = after ? (after.readings - before.readings) / ((after.seen - before.seen) / 1000 || 1) : null;
      const rejected = Object.values(it.rejected).reduce((sum, n) => sum + n, 0), late = Object.values(it.late).reduce((sum, n) => sum + n, 0);
      put(tiles,
        tile(speed === null ? "…" : Math.round(speed).toLocaleString(), "readings a second"),
        tile(it.readings.toLocaleString(), "readings since it started"),
        tile(it.notifications.toLocaleString(), "notifications in all"),
        tile((it.behind + it.waiting).toLocaleString(), "on their way", it.behind + it.waiting > 10000 ? "warn" : ""),
        tile(late.toLocaleString(), "late", late ? "warn" : ""),
        tile(rejected.toLocaleString(), "rejected", rejected ? "warn" : ""),
        tile(showLength(it.now - it.started), "since it started"));
      drawRate();
      put(damage, it.damage.length ? h("section", { class: "card" }, h("h2", {}, "Damaged or missing in the log"), h("ul", {}, it.damage.map((one) => h("li", {}, one)))) : null);
      put(topics, table(["Topic", "Readings"], Object.entries(it.topics).map(([name, n]) => [name, n.toLocaleString()]), "No reading yet."),
        Object.keys(it.unread).length ? h("p", { class: "faint" }, `Of topics that are not declared: ${Object.entries(it.unread).map(([name, n]) => `${name} ${n.toLocaleString()}`).join(", ")}`) : null,
        Object.keys(it.without_key).length ? h("p", { class: "faint" }, `Readings that mean nothing to a condition, as they lack its key: ${Object.entries(it.without_key).map(([why, n]) => `${why} ${n.toLocaleString()}`).join(", ")}`) : null,
        it.corrected ? h("p", { class: "faint" }, `${it.corrected.toLocaleString()} came with a time in the future and got that of their arrival.`) : null,
        it.repeated ? h("p", { class: "faint" }, `${it.repeated.toLocaleString()} came again and were not taken again.`) : null);
      put(feeds, table(["Feed", "State", "Lag", "Messages", "Waiting", "Dropped", "Restarts"], it.feeds.map((one) =>
        [one.name, state(one.connected && !one.trouble && !one.ended, feedState(one)), one.lag === null ? "" : showLength(one.lag * 1e6), one.messages.toLocaleString(), one.waiting, one.dropped, one.restarts]), "Only HTTP. Brokers are named with --mqtt or in serve.toml."));
      put(sinks, table(["Sink", "State", "Behind", "Delivered", "Refused", "Restarts"], it.sinks.map((one) =>
        [one.name, state(!one.trouble && !one.ended, one.ended || one.trouble || "takes notifications"), one.behind.toLocaleString(), one.delivered.toLocaleString(), one.dead_letters, one.restarts]), "Only this page. Others are named in serve.toml."));
      put(reasons, table(["Why", "How many"], Object.entries(it.rejected).sort((a, b) => b[1] - a[1]).slice(0, 20).map(([why, n]) => [why, n.toLocaleString()]), "Nothing was rejected."));
    }

    function drawRate() {
      const rates = past.slice(1).map((one, i) => [Date.now() / 1000 - (performance.now() - one.seen) / 1000, (one.readings - past[i].readings) / ((one.seen - past[i].seen) / 1000 || 1)]);
      if (rates.length < 2) { if (!plot) put(rate, h("p", { class: "empty" }, "Measuring …")); return; }
      const data = [rates.map((one) => one[0]), rates.map((one) => one[1])];
      if (plot) { plot.setData(data); return; }
      put(rate);
      const axis = { stroke: painted(rate, "--faint"), grid: { stroke: painted(rate, "--line") }, ticks: { stroke: painted(rate, "--line") }, font: `11px ${painted(rate, "--font")}` };
      plot = new uPlot({ width: rate.clientWidth, height: 160, legend: { show: false }, cursor: { show: false },
        series: [{}, { stroke: painted(rate, "--accent"), fill: `${painted(rate, "--accent")}30`, width: 1.5, points: { show: false } }],
        scales: { x: { range: (_, low, high) => [Math.min(low, high - 60), high] }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } }, axes: [axis, { ...axis, size: 56 }] }, data, rate);
    }

    async function look() {
      try {
        const [refused, dead] = await Promise.all([get("/api/rejects", { most: 30 }), get("/api/dead-letters", { most: 30 })]);
        put(rejects, refused.length ? h("details", {}, h("summary", {}, `The latest ${refused.length}`),
          table(["When", "Where", "Why", "What"], refused.map((one) => [showFull(one.at), `${one.feed} ${one.channel}`, one.reason, h("code", { class: "cut" }, one.payload)]))) : null);
        put(letters, table(["When", "Sink", "Answer", "Notification", ""], dead.map((one) => [showFull(one.at), one.sink, one.reason, h("code", { class: "cut" }, one.line || ""), again(one)]), "Nothing was refused."),
          app.may("edit") ? [...new Set(dead.map((one) => one.sink))].map((name) => resend(`Send all of ${name} again`, { sink: name })) : null);
      } catch (error) { say(error.message, "bad"); }
    }

    function again(one) {
      if (one.resend) return "is sent again";
      return app.may("edit") ? resend("Send again", { sink: one.sink, position: one.position }) : "";
    }

    function resend(text, which) {
      return h("button", {
        type: "button", class: "small", "data-name": `resend ${which.sink} ${which.position ?? "all"}`,
        onclick: async () => {
          try { await send("POST", "/api/dead-letters/resend", which); await look(); } catch (error) { say(error.message, "bad"); }
        },
      }, text);
    }

    app.addEventListener("status", draw);
    const timer = setInterval(look, 5000);
    draw();
    look();
    return () => { clearInterval(timer); app.removeEventListener("status", draw); plot?.destroy(); };
  },
};

function tile(number, text, kind = "") {
  return h("div", { class: `tile ${kind}` }, h("b", {}, number), h("span", {}, text));
}

function feedState(one) {
  if (one.ended || one.connected) return one.ended || one.trouble || (one.caught_up ? "connected" : "connected, reads a backlog");
  return one.trouble ? `not connected: ${one.trouble}` : "not connected";
}

function state(well, text) {
  return h("span", { class: well ? "state good" : "state bad" }, text);
}

function table(heads, rows, empty = "") {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  return h("div", { class: "scroll" }, h("table", { class: "grid" },
    h("thead", {}, h("tr", {}, heads.map((one) => h("th", { scope: "col" }, one)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))))));
}
