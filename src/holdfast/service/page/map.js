// The regions of the gazetteer, coloured by what holds in them, and the outlines of storms that are folded.

import { get } from "./api.js";
import { calm, h, put, say } from "./dom.js";
import { instant, showLength, showTime } from "./time.js";

const PAD = 10, HEAD = 24;

export default {
  title: "Map",
  icon: "▦",
  open(main, app) {
    let regions = [], conditions = [], chosen = null, closed = false;
    const which = h("select", { "aria-label": "Subscription", onchange: draw });
    const legend = h("div", { class: "legend" }), place = h("div", { class: "map" }), about = h("section", { class: "card" });
    main.append(h("h1", { class: "sr" }, "Map"),
      h("div", { class: "columns" },
        h("section", { class: "card wide" }, h("div", { class: "bar" }, h("h2", {}, "Where"), which, legend), place), about));

    async function look() {
      try {
        conditions = await get("/api/conditions");
        if (!closed) draw();
      } catch (error) { say(error.message, "bad"); }
    }
    async function learn() {
      const was = which.value;
      put(which, h("option", { value: "" }, "all subscriptions"), app.names.map((name) => h("option", { value: name }, name)));
      which.value = app.names.includes(was) ? was : "";
      regions = await get("/api/regions").catch((error) => { say(error.message, "bad"); return []; });
      await look();
    }

    function draw() {
      const wanted = conditions.filter((one) => !which.value || one.subscription === which.value);
      const here = new Map(regions.map((one) => [one.name, wanted.filter((held) => held.scope === one.name)]));
      const storms = wanted.filter((one) => one.outline).map((one) => ({ name: `${one.subscription} ${one.scope}`, parent: null, outline: { polygon: one.outline }, storm: one }));
      const all = [...regions, ...storms];
      put(legend, app.names.filter((name) => !which.value || which.value === name).map((name) =>
        h("span", {}, h("i", { class: "dot", style: { "--is": app.colour(name) } }), name)));
      if (!all.length) {
        put(place, h("p", { class: "empty" }, "The definition declares no regions. With ", h("code", {}, "region kitchen = rectangle (0, 0) (4, 5)"),
          " or ", h("code", {}, "gazetteer \"plan.toml\""), " they appear here."));
      } else {
        const box = { width: Math.max(300, place.clientWidth), height: 0 };
        const shapes = all.some((one) => one.outline) ? drawn(all, box) : nested(all, box);
        const folded = new Map(storms.map((one) => [one.name, [one.storm]]));
        put(place, h("svg", { viewBox: `0 0 ${box.width} ${box.height}`, role: "group", "aria-label": "Regions" },
          h("defs", {}, h("pattern", { id: "unsure", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
            h("rect", { width: 3, height: 7, class: "hatch" }))),
          shapes.map((shape) => region(shape, here.get(shape.name) || folded.get(shape.name) || [], folded.has(shape.name)))));
      }
      tell(here, wanted);
    }

    function region(shape, held, storm) {
      const sure = held.filter((one) => one.unknown === null), inside = Math.max(1, sure.length);
      const words = held.map((one) => one.subscription + (one.members ? ` (${one.members})` : "") + (one.unknown ? " (unknown)" : "")).join(", ") || "nothing holds";
      const bands = shape.box ? sure.map((one, i) => h("rect", {
        x: shape.box.x, y: shape.box.y + (shape.box.height / inside) * i, width: 7, height: shape.box.height / inside,
        style: { fill: app.colour(one.subscription) },
      })) : [];
      const tint = sure.length ? app.colour(sure[0].subscription) : null;
      const outline = shape.outline({ class: "area" + (shape.leaf ? " leaf" : ""), style: tint ? { fill: tint, "fill-opacity": shape.leaf ? 0.32 : 0.12, stroke: tint } : {} });
      return h("g", {
        class: "region" + (storm ? " storm" : "") + (chosen === shape.name ? " chosen" : ""), tabindex: 0, role: "button", "aria-label": `${shape.name}: ${words}`,
        onclick: (event) => { event.stopPropagation(); pick(shape.name); },
        onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(shape.name); } },
      }, h("title", {}, `${shape.name}: ${words}`), outline,
      held.some((one) => one.unknown) && shape.outline({ style: { fill: "url(#unsure)" } }), bands,
      h("text", { x: shape.label.x, y: shape.label.y, "text-anchor": shape.label.anchor || "start", class: "name" }, storm ? `${shape.name}: ${held[0].members}` : shape.name),
      shape.leaf && !storm && held.slice(0, 4).map((one, i) => h("text", {
        x: shape.label.x, y: shape.label.y + 18 + 15 * i, "text-anchor": shape.label.anchor || "start", class: "what",
      }, one.unknown ? `${one.subscription} unknown` : one.subscription)));
    }

    function pick(name) {
      chosen = chosen === name ? null : name;
      draw();
    }

    function tell(here, wanted) {
      const inside = chosen ? wanted.filter((one) => one.scope === chosen || under(regions, one.scope, chosen)) : wanted.filter((one) => here.has(one.scope));
      const outside = wanted.filter((one) => !here.has(one.scope));
      put(about, h("h2", {}, chosen || "Everywhere"),
        inside.length ? h("ul", { class: "plain" }, inside.map(item)) : h("p", { class: "empty" }, chosen ? "Nothing holds here." : "Nothing holds in a region."),
        !chosen && outside.length ? [h("h3", {}, "In no region of the map"), h("ul", { class: "plain" }, outside.map(item))] : null);
    }
    function item(one) {
      const where = new URLSearchParams({ subscription: one.subscription, scope: one.scope ?? "", all: one.scope === null ? 1 : "" });
      const since = instant(one.since);
      return h("li", {}, h("i", { class: "dot", style: { "--is": app.colour(one.subscription) } }),
        h("a", { href: `#timeline?${where}` }, `${one.subscription} ${one.scope ?? ""}`),
        one.members ? h("small", {}, ` ${one.members} hold`) : null,
        h("small", {}, one.unknown ? " unknown" : ` since ${showTime(since, app.now())}, ${showLength(app.now() - since)}`));
    }

    const soon = calm(150, look), again = calm(150, draw);
    app.addEventListener("told", soon);
    app.addEventListener("changed", learn);
    window.addEventListener("resize", again);
    learn();
    return () => {
      closed = true;
      app.removeEventListener("told", soon);
      app.removeEventListener("changed", learn);
      window.removeEventListener("resize", again);
    };
  },
};

function under(regions, name, ancestor) {
  for (let one = regions.find((r) => r.name === name); one; one = regions.find((r) => r.name === one.parent)) {
    if (one.parent === ancestor) return true;
  }
  return false;
}

const childrenOf = (regions, name) => regions.filter((one) => one.parent === name && one.name !== name);

// Regions that have shapes: a plan, north above. One without is around those in it; where none of them has one, beneath.
function drawn(regions, box) {
  const known = regions.map((one) => ({ ...one, outline: one.outline || around(regions, one) })).filter((one) => one.outline);
  const points = known.flatMap((one) => corners(one.outline));
  const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
  const least = (some) => some.reduce((a, b) => Math.min(a, b)), most = (some) => some.reduce((a, b) => Math.max(a, b));
  const [left, right, low, high] = [least(xs), most(xs), least(ys), most(ys)];
  const scale = Math.min((box.width - 2 * PAD) / (right - left || 1), 560 / (high - low || 1));
  box.height = (high - low) * scale + 2 * PAD;
  const shift = (box.width - (right - left) * scale) / 2;
  const x = (at) => shift + (at - left) * scale, y = (at) => PAD + (high - at) * scale;
  const size = (one) => (one.outline.circle ? Math.PI * one.outline.circle[2] ** 2 : area(one.outline.polygon));
  const rest = regions.filter((one) => !known.some((other) => other.name === one.name));
  const shown = known.sort((a, b) => size(b) - size(a)).map((one) => {
    const leaf = !childrenOf(regions, one.name).length;
    if (one.outline.circle) {
      const [cx, cy, r] = one.outline.circle;
      return { name: one.name, leaf, label: { x: x(cx), y: leaf ? y(cy) : y(cy - r) - 8, anchor: "middle" },
        outline: (more) => h("circle", { cx: x(cx), cy: y(cy), r: r * scale, ...more }) };
    }
    const turns = one.outline.polygon, mine = { x: turns.map((p) => x(p[0])), y: turns.map((p) => y(p[1])) };
    const label = leaf ? { x: least(mine.x) + 14, y: least(mine.y) + 20 } : { x: least(mine.x) + 8, y: most(mine.y) - 8 };
    const straight = turns.length === 4;
    return { name: one.name, leaf, label, box: straight && leaf ? { x: least(mine.x), y: least(mine.y), width: most(mine.x) - least(mine.x), height: most(mine.y) - least(mine.y) } : null,
      outline: (more) => h("polygon", { points: turns.map((p) => `${x(p[0])},${y(p[1])}`).join(" "), ...more }) };
  });
  return rest.length ? [...shown, ...nested(rest, box)] : shown;
}

function corners({ polygon, circle }) {
  return polygon || [[circle[0] - circle[2], circle[1] - circle[2]], [circle[0] + circle[2], circle[1] + circle[2]]];
}

// A rectangle with some room around all that lies in a region.
function around(regions, one) {
  const inside = childrenOf(regions, one.name).map((child) => child.outline || around(regions, child)).filter(Boolean).flatMap(corners);
  if (!inside.length) return null;
  const xs = inside.map((p) => p[0]), ys = inside.map((p) => p[1]);
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)], room = (right - left + high - low) / 30;
  return { polygon: [[left - room, low - room], [right + room, low - room], [right + room, high + room], [left - room, high + room]] };
}

function area(corners) {
  return Math.abs(corners.reduce((sum, [x, y], i) => {
    const [u, v] = corners[(i + 1) % corners.length];
    return sum + x * v - u * y;
  }, 0)) / 2;
}

// Regions that have only names: boxes in boxes.
function nested(regions, box) {
  const shapes = [], roots = regions.filter((one) => !regions.some((other) => other.name === one.parent));
  const weight = (one) => childrenOf(regions, one.name).reduce((sum, child) => sum + weight(child), 0) || 1;
  const leaves = roots.reduce((sum, one) => sum + weight(one), 0);
  const height = Math.min(900, Math.max(box.height ? 90 : 260, Math.ceil(Math.sqrt(leaves)) * (box.height ? 60 : 130) + (box.height ? 0 : 60)));
  split(roots, { x: PAD, y: box.height + PAD, width: box.width - 2 * PAD, height: height - 2 * PAD }, 0);
  box.height += height;
  return shapes;

  function split(some, room, depth) {
    if (!some.length) return;
    const wide = some.length <= 3 ? (depth % 2 ? some.length : 1) : Math.ceil(Math.sqrt((some.length * room.width) / room.height));
    const columns = Math.min(some.length, Math.max(1, wide)), rows = Math.ceil(some.length / columns);
    some.forEach((one, i) => {
      const row = Math.floor(i / columns), inRow = Math.min(columns, some.length - row * columns);
      const width = room.width / inRow, height = room.height / rows;
      const mine = { x: room.x + (i % columns) * width + 3, y: room.y + row * height + 3, width: width - 6, height: height - 6 };
      const children = childrenOf(regions, one.name);
      shapes.push({ name: one.name, leaf: !children.length, box: children.length ? null : mine, label: { x: mine.x + (children.length ? 9 : 18), y: mine.y + 17 },
        outline: (more) => h("rect", { ...mine, rx: 7, ...more }) });
      split(children, { x: mine.x + 6, y: mine.y + HEAD, width: mine.width - 12, height: mine.height - HEAD - 6 }, depth + 1);
    });
  }
}
