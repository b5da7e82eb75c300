// Bars of conditions over time; the readings of a chosen one, with entrance and exit drawn in.

import { get } from "./api.js";
import { AXIS, ROW, drawBars } from "./bars.js";
import { calm, h, painted, put, say } from "./dom.js";
import { DAY, HOUR, SECOND, iso, showFull, showLength, showTime, zone } from "./time.js";

const RANGES = [["1 h", HOUR], ["6 h", 6 * HOUR], ["24 h", DAY], ["7 d", 7 * DAY], ["30 d", 30 * DAY], ["1 y", 365 * DAY]];
const PAGE = 60, LONGEST = 20 * 365 * DAY;

export default {
  title: "Timeline",
  icon: "▤",
  open(main, app, query) {
    let length = DAY, end = app.now(), following = true, rows = [], total = 0, skip = 0, plot = null, cursor = null;
    let chosen = query.has("subscription")
      ? { subscription: query.get("subscription"), scope: query.get("all") ? null : query.get("scope") } : null;
    let attribute = null, stop = new AbortController(), busy = false;
    const which = h("select", { "aria-label": "Subscription", onchange: () => { skip = 0; load(); } });
    const find = h("input", { type: "search", placeholder: "Find a place", "aria-label": "Find", oninput: () => { skip = 0; soon(); } });
    const ranges = RANGES.map(([text, size]) => h("button", { type: "button", onclick: () => { length = size; load(); } }, text));
    const live = h("button", { type: "button", title: "Follow what happens (L)", onclick: () => { following = !following; load(); } }, "● live");
    const said = h("p", { class: "faint", role: "status" });
    const labels = h("div", { class: "labels" }), canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": "Timeline" });
    const pages = h("div", { class: "buttons" }), hint = h("div", { class: "hint", hidden: true });
    const detail = h("section", { class: "card", hidden: true });
    main.append(h("h1", { class: "sr" }, "Timeline"),
      h("section", { class: "card" },
        h("div", { class: "bar" },
          h("div", { class: "segments", role: "group", "aria-label": "Length" }, ranges),
          h("div", { class: "segments", role: "group", "aria-label": "Move" },
            h("button", { type: "button", title: "Earlier (←)", "aria-label": "Earlier", onclick: () => move(-0.5) }, "◀"),
            h("button", { type: "button", title: "Wider (−)", "aria-label": "Wider", onclick: () => zoom(2) }, "−"),
            h("button", { type: "button", title: "Closer (+)", "aria-label": "Closer", onclick: () => zoom(0.5) }, "+"),
            h("button", { type: "button", title: "Later (→)", "aria-label": "Later", onclick: () => move(0.5) }, "▶"), live),
          which, find),
        said,
        h("div", { class: "timeline" }, labels, h("div", { class: "canvas" }, canvas, hint)), pages),
      detail);

    const view = () => ({ start: end - length, end });

    async function load() {
      if (following) end = app.now() + length * 0.02;
      stop.abort();
      const mine = (stop = new AbortController());
      busy = true;
      const { start } = view();
      ranges.forEach((one, i) => one.setAttribute("aria-pressed", RANGES[i][1] === length));
      live.setAttribute("aria-pressed", following);
      try {
        const found = await get("/api/timeline", {
          start: iso(start), end: iso(end), width: Math.max(50, canvas.clientWidth), subscription: which.value,
          find: find.value, skip, most: PAGE,
        }, mine.signal);
        rows = found.rows;
        total = found.total;
        draw();
        if (chosen) await drawReadings(mine.signal);
      } catch (error) {
        if (!mine.signal.aborted) say(error.message, "bad");
      } finally {
        if (stop === mine) busy = false;
      }
    }
    const soon = calm(120, load);

    function shown() {
      return rows.map((row) => ({ ...row, colour: app.colour(row.subscription), chosen: isChosen(row), thin: row.kind === "unknown" }));
    }
    const isChosen = (row) => chosen && row.subscription === chosen.subscription && row.scope === chosen.scope;

    function draw() {
      const { start } = view();
      const held = rows.reduce((sum, row) => sum + row.bars.reduce((n, bar) => n + bar[2], 0), 0);
      put(said, `${showFull(start)} – ${showFull(end)} (${zone}) · ${total.toLocaleString()} ${total === 1 ? "row" : "rows"}, ${held.toLocaleString()} ${held === 1 ? "stretch" : "stretches"}`);
      put(labels, rows.map((row, i) => h("button", {
        type: "button", class: isChosen(row) ? "label chosen" : "label", style: { height: `${ROW}px` }, title: `${row.subscription} ${row.scope ?? ""}`,
        "aria-label": `${row.subscription} ${row.scope ?? ""} ${row.kind}: ${row.bars.reduce((n, bar) => n + bar[2], 0)} stretches`,
        onclick: () => choose(rows[i]),
      }, h("i", { class: "dot", style: { "--is": app.colour(row.subscription) } }),
      rows[i - 1]?.subscription === row.subscription ? h("span", { class: "faint" }, row.subscription) : h("b", {}, row.subscription),
      " ", h("span", {}, row.scope ?? ""), row.kind === "unknown" && h("small", { class: "faint" }, " unknown"))));
      canvas.setAttribute("aria-label", `Timeline of ${rows.length} rows`);
      drawBars(canvas, shown(), view(), { now: app.now(), cursor });
      put(pages, total > PAGE && [
        h("button", { type: "button", disabled: skip === 0, onclick: () => { skip = Math.max(0, skip - PAGE); load(); } }, "Rows before"),
        `${skip + 1}–${Math.min(total, skip + PAGE)} of ${total.toLocaleString()}`,
        h("button", { type: "button", disabled: skip + PAGE >= total, onclick: () => { skip += PAGE; load(); } }, "Rows after")]);
      if (!rows.length) put(labels, h("p", { class: "empty" }, "Nothing held in this time."));
    }

    function choose(row) {
      chosen = isChosen(row) ? null : { subscription: row.subscription, scope: row.scope };
      attribute = null;
      detail.hidden = !chosen;
      draw();
      if (chosen) load();
    }

    // --- readings of what is chosen ---

    async function drawReadings(signal) {
      const one = app.definition.subscriptions.find((known) => known.name === chosen.subscription);
      const options = one ? one.topics.flatMap((topic) => (app.definition.topics.find((known) => known.name === topic)?.plottable || [])
        .map((name) => ({ topic, name }))) : [];
      detail.hidden = false;
      const title = h("h2", {}, h("i", { class: "dot", style: { "--is": app.colour(chosen.subscription) } }), `${chosen.subscription} ${chosen.scope ?? ""}`);
      if (!options.length) {
        put(detail, title, h("p", { class: "empty" }, "What it listens to has no numbers to draw."));
        return;
      }
      if (!attribute) {
        const drawn = one.lines.map((line) => line.attribute);
        attribute = options.find((option) => drawn.includes(option.name)) || options[0];
      }
      const { start } = view();
      const found = await get("/api/chart", {
        subscription: chosen.subscription, topic: attribute.topic, attribute: attribute.name,
        scope: chosen.scope, start: iso(start), end: iso(end), width: Math.max(50, Math.round(canvas.clientWidth)),
      }, signal);
      const choice = h("select", { "aria-label": "Attribute", onchange: (event) => { attribute = options[event.target.value]; load(); } },
        options.map((option, i) => h("option", { value: i, selected: option.topic === attribute.topic && option.name === attribute.name }, `${option.topic}.${option.name}`)));
      const place = h("div", { class: "chart" });
      const lines = one.lines.filter((line) => line.attribute === attribute.name);
      put(detail, h("div", { class: "bar" }, title, choice,
        h("span", { class: "faint" }, `${found.total.toLocaleString()} readings of ${found.sources.toLocaleString()} ${found.sources === 1 ? "source" : "sources"}`
          + (found.sources > found.lines.length ? `, ${found.lines.length} drawn` : "") + (found.complete ? "" : "; reading took too long, the rest is missing")),
        h("span", { class: "legend" }, lines.map((line) => h("span", {}, h("i", { class: `dash ${line.part}` }),
          `${line.part === "enter" ? "starts" : "ends"} at ${line.sign} ${line.value}${found.unit ? ` ${found.unit}` : ""}`)))), place);
      if (!found.total) {
        put(place, h("p", { class: "empty" }, "No readings are kept of this time."));
        return;
      }
      plot = drawPlot(place, found, lines, rows.find((row) => isChosen(row) && row.kind === "holds")?.bars || [], { start, end }, app.colour(chosen.subscription));
    }

    // --- moving ---

    function clamp() {
      length = Math.min(LONGEST, Math.max(10 * SECOND, length));
    }
    function move(part) {
      following = false;
      end += length * part;
      if (end >= app.now()) following = true;
      load();
    }
    function zoom(factor, at = end - length / 2) {
      const part = (end - at) / length;
      length *= factor;
      clamp();
      if (!following) end = at + length * part;
      draw();
      soon();
    }
    const atPointer = (event) => {
      const box = canvas.getBoundingClientRect();
      return end - length + ((event.clientX - box.left) / box.width) * length;
    };
    canvas.addEventListener("wheel", (event) => {
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        following = false;
        end += (event.deltaX / canvas.clientWidth) * length;
        draw(); soon();
      } else if (event.ctrlKey || event.shiftKey || event.metaKey) {
        event.preventDefault();
        following = false;
        zoom(event.deltaY > 0 ? 1.25 : 0.8, atPointer(event));
      }
    }, { passive: false });

    const fingers = new Map();
    let moved = false;
    canvas.addEventListener("pointerdown", (event) => {
      fingers.set(event.pointerId, event.clientX);
      moved = false;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) { point(event); return; }
      const before = [...fingers.values()];
      const was = fingers.get(event.pointerId);
      if (Math.abs(event.clientX - was) < 3 && !moved) return;
      moved = true;
      following = false;
      fingers.set(event.pointerId, event.clientX);
      if (before.length === 1) end -= ((event.clientX - was) / canvas.clientWidth) * length;
      else {
        const after = [...fingers.values()];
        const spread = (some) => Math.max(20, Math.abs(some[0] - some[1]));
        const at = atPointer(event), part = (end - at) / length;
        length *= spread(before) / spread(after);
        clamp();
        end = at + length * part;
      }
      draw(); soon();
    });
    canvas.addEventListener("pointerup", (event) => {
      fingers.delete(event.pointerId);
      const row = rows[Math.floor(event.offsetY / ROW)];
      if (!moved && row && event.offsetY < canvas.clientHeight - AXIS) choose(row);
    });
    canvas.addEventListener("pointercancel", (event) => fingers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => { cursor = null; hint.hidden = true; draw(); });

    function point(event) {
      cursor = atPointer(event);
      const row = rows[Math.floor(event.offsetY / ROW)];
      const near = length / canvas.clientWidth * 4;
      const bar = row?.bars.find(([from, to]) => cursor >= from - near && cursor <= to + near);
      hint.hidden = !bar;
      if (bar) {
        const [from, to, count] = bar;
        put(hint, h("b", {}, `${row.subscription} ${row.scope ?? ""}`), h("br"),
          count > 1 ? `${count.toLocaleString()} times between ${showTime(from, app.now())} and ${showTime(to, app.now())}`
            : `${showTime(from, app.now())} – ${to >= app.now() ? "now" : showTime(to, app.now())} (${showLength(Math.min(to, app.now()) - from)})`);
        hint.style.left = `${Math.min(event.offsetX + 12, canvas.clientWidth - 220)}px`;
        hint.style.top = `${event.offsetY + 16}px`;
      }
      drawBars(canvas, shown(), view(), { now: app.now(), cursor });
    }

    function onKey(event) {
      if (event.target.closest("input, select, dialog") || event.ctrlKey || event.metaKey) return;
      const keys = { ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), l: () => live.click() };
      if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
    }

    function names() {
      const was = which.value;
      put(which, h("option", { value: "" }, "all subscriptions"), app.names.map((name) => h("option", { value: name }, name)));
      which.value = app.names.includes(was) ? was : "";
    }
    const onChanged = () => { names(); load(); };
    const onResize = calm(150, load);
    let fresh = 0;
    const onTold = () => { if (following && !busy && performance.now() - fresh > 700) { fresh = performance.now(); load(); } };
    const timer = setInterval(() => { if (following && !busy && !fingers.size && !document.hidden) load(); }, 5000);
    app.addEventListener("told", onTold);
    app.addEventListener("changed", onChanged);
    window.addEventListener("resize", onResize);
    document.addEventListener("keydown", onKey);
    names();
    if (chosen) detail.hidden = false;
    load();
    return () => {
      stop.abort();
      clearInterval(timer);
      plot?.destroy();
      app.removeEventListener("told", onTold);
      app.removeEventListener("changed", onChanged);
      window.removeEventListener("resize", onResize);
      document.removeEventListener("keydown", onKey);
    };
  },
};

// Lines of each source between their least and greatest, dashed lines where the condition starts and ends,
// and a tint where it held.
function drawPlot(place, found, lines, bars, { start, end }, tint) {
  const palette = ["--l0", "--l1", "--l2", "--l3", "--l4", "--l5"].map((name) => painted(place, name));
  const faint = painted(place, "--faint"), grid = painted(place, "--line");
  const seconds = (at) => at / SECOND;
  const dashes = { enter: painted(place, "--enter"), exit: painted(place, "--exit") };
  const data = [found.time.map(seconds)], series = [{ value: (_, at) => (at === null ? "" : showFull(at * SECOND)) }], bands = [];
  found.lines.forEach((line, i) => {
    const stroke = palette[i % palette.length];
    const show = (_, value) => (value === null ? "–" : `${Number(value.toPrecision(6))}${found.unit ? ` ${found.unit}` : ""}`);
    data.push(line.high, line.low);
    series.push({ label: line.source, stroke, width: 1.4, spanGaps: true, value: show, points: { show: found.time.length < 80, size: 4 } });
    series.push({ label: `${line.source} least`, stroke, width: 1, spanGaps: true, points: { show: false }, value: show });
    bands.push({ series: [series.length - 2, series.length - 1], fill: `${stroke}40` });
  });
  const values = data.slice(1).flat().filter((one) => one !== null).concat(lines.map((line) => line.value));
  const [low, high] = extremes(values), pad = (high - low || 1) * 0.08;
  const axis = { stroke: faint, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: `11px ${painted(place, "--font")}` };
  const plot = new uPlot({
    width: place.clientWidth, height: Math.max(200, Math.min(340, window.innerHeight * 0.4)), series, bands,
    legend: { live: true }, cursor: { y: false, drag: { x: false, y: false } },
    scales: { x: { time: true, range: () => [seconds(start), seconds(end)] }, y: { range: () => [low - pad, high + pad] } },
    axes: [axis, { ...axis, size: 58, label: found.unit ? `${found.attribute} (${found.unit})` : found.attribute, labelSize: 18, labelFont: axis.font }],
    hooks: {
      drawClear: [(u) => {
        u.ctx.save();
        u.ctx.globalAlpha = 0.14;
        u.ctx.fillStyle = painted(place, tint);
        for (const [from, to] of bars) {
          const left = Math.max(u.bbox.left, u.valToPos(seconds(from), "x", true)), right = Math.min(u.bbox.left + u.bbox.width, u.valToPos(seconds(to), "x", true));
          if (right > left - 2) u.ctx.fillRect(left, u.bbox.top, Math.max(2, right - left), u.bbox.height);
        }
        u.ctx.restore();
      }],
      draw: [(u) => {
        u.ctx.save();
        u.ctx.setLineDash([7, 5]);
        u.ctx.lineWidth = 1.5 * (window.devicePixelRatio || 1);
        for (const line of lines) {
          const y = u.valToPos(line.value, "y", true);
          u.ctx.strokeStyle = dashes[line.part];
          u.ctx.beginPath();
          u.ctx.moveTo(u.bbox.left, y);
          u.ctx.lineTo(u.bbox.left + u.bbox.width, y);
          u.ctx.stroke();
        }
        u.ctx.restore();
      }],
    },
  }, data, place);
  return plot;
}

// Not Math.min(...values): an argument each is too many.
function extremes(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) { if (value < low) low = value; if (value > high) high = value; }
  return [low, high];
}
