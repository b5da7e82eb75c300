// The definition: an editor with the checker's word at its place; what it would have told; saving it.

import { get, send } from "./api.js";
import { drawBars, ROW } from "./bars.js";
import { ask, calm, h, put, say } from "./dom.js";
import { DAY, HOUR, SECOND, instant, iso, showFull, showLength, showTime } from "./time.js";

const RANGES = [["6 hours", 6 * HOUR], ["24 hours", DAY], ["2 days", 2 * DAY], ["7 days", 7 * DAY], ["30 days", 30 * DAY], ["1 year", 365 * DAY]];
let words = null, draft = null;

export default {
  title: "Definition",
  icon: "✎",
  open(main, app) {
    let checked = null, marks = [], closed = false, number = 0, tried = null;
    const place = h("div", { class: "editor" }), faults = h("div", { class: "faults", role: "status" });
    const found = h("div", { class: "found" }), change = h("div");
    const range = h("select", { "aria-label": "Over how much" }, RANGES.map(([text], i) => h("option", { value: i, selected: i === 2 }, text)));
    const run = h("button", { type: "button", class: "primary", title: "Ctrl Enter", onclick: dryRun }, "When would this have fired?");
    const save = h("button", { type: "button", title: "Ctrl S", onclick: keep }, "Save …");
    const revert = h("button", { type: "button", onclick: () => { editor.setValue(app.definition.text); } }, "Revert");
    main.append(h("h1", { class: "sr" }, "Definition"),
      h("div", { class: "columns wide-first" },
        h("section", { class: "card" },
          h("div", { class: "bar" }, h("h2", {}, "Definition"), h("span", { class: "grow" }), revert, save),
          place, faults, change),
        h("section", { class: "card" }, h("div", { class: "bar" }, h("h2", {}, "Over the past"), h("span", { class: "grow" }), h("label", {}, "the last ", range), run), found)));

    const editor = CodeMirror(place, {
      value: draft === null ? app.definition.text : draft, lineNumbers: true, lineWrapping: true, viewportMargin: Infinity, indentUnit: 2, tabSize: 2,
      gutters: ["CodeMirror-linenumbers", "faults"], inputStyle: "contenteditable", mode: mode(words),
      extraKeys: {
        "Ctrl-Space": complete, "Ctrl-Enter": dryRun, "Cmd-Enter": dryRun, "Ctrl-S": keep, "Cmd-S": keep,
        Esc: () => editor.getInputField().blur(), Tab: (cm) => (cm.somethingSelected() ? cm.indentSelection("add") : cm.replaceSelection("  ")),
        "Shift-Tab": false,
      },
    });
    editor.getInputField().setAttribute("aria-label", "Definition");
    editor.on("change", () => {
      draft = editor.getValue() === app.definition.text ? null : editor.getValue();
      found.classList.toggle("stale", tried !== null && tried !== editor.getValue());
      soon();
    });
    editor.on("inputRead", (cm, { text }) => { if (/^[\w.]$/.test(text[0])) complete(cm, true); });

    // --- checking ---

    async function check(count = false) {
      const mine = ++number;
      try {
        const answer = await send("POST", "/api/check", { text: editor.getValue(), count });
        if (!closed && mine === number) {
          checked = answer;
          show();
        }
        return answer;
      } catch (error) { say(error.message, "bad"); }
      return null;
    }
    const soon = calm(250, () => check());

    function show() {
      marks.forEach((one) => one.clear());
      marks = [];
      editor.clearGutter("faults");
      const all = [...checked.errors.map((one) => ({ ...one, kind: "error" })), ...(checked.warnings || []).map((one) => ({ ...one, kind: "warning" }))];
      for (const one of all) {
        if (one.line === null) continue;
        const from = { line: one.line - 1, ch: one.column - 1 }, to = { line: one.line - 1, ch: one.column - 1 + Math.max(1, one.width) };
        marks.push(editor.markText(from, to, { className: `fault-${one.kind}`, title: one.message }));
        editor.setGutterMarker(one.line - 1, "faults", h("span", { class: `mark ${one.kind}`, title: one.message }, one.kind === "error" ? "●" : "▲"));
      }
      put(faults, all.length ? all.map((one) => h("button", {
        type: "button", class: `fault ${one.kind}`,
        onclick: () => { if (one.line !== null) { editor.focus(); editor.setCursor(one.line - 1, one.column - 1); } },
      }, h("b", {}, one.line === null ? one.kind : `line ${one.line}`), ` ${one.message}`, one.hint && h("i", {}, ` ${one.hint}`)))
        : h("p", { class: "fine" }, `✓ ${checked.subscriptions.length} subscriptions on ${checked.topics.length} topics`));
      run.disabled = !checked.ok;
      save.disabled = !checked.ok || draft === null || !app.may("edit") || (app.status && !app.status.editable);
      revert.disabled = draft === null;
      put(change, checked.ok && draft !== null ? effects(checked.change) : null);
    }

    // --- completion ---

    function complete(cm, quietly = false) {
      const cursor = cm.getCursor(), line = cm.getLine(cursor.line).slice(0, cursor.ch);
      if (/#/.test(line.replace(/"[^"]*"/g, ""))) return;
      const typed = line.match(/[\p{L}_°µ%][\p{L}\p{N}_]*$/u)?.[0] || "";
      if (quietly && typed.length < 2) return;
      const options = candidates(line, cm.getValue()).filter((one) => one.text.toLowerCase().startsWith(typed.toLowerCase()) && one.text !== typed);
      if (!options.length) return;
      cm.showHint({ completeSingle: false, closeCharacters: /[\s()[\]{};>,]/, hint: () => ({
        list: options.slice(0, 40).map((one) => ({ text: one.text, render: (item) => put(item, one.text, h("small", {}, one.about)) })),
        from: { line: cursor.line, ch: cursor.ch - typed.length }, to: cursor,
      }) });
    }

    function candidates(line, text) {
      const topics = checked?.topics || app.definition.topics, subscriptions = checked?.subscriptions || app.definition.subscriptions;
      const options = [];
      if (/\d\s*[\p{L}°µ%]*$/u.test(line)) options.push(...(words?.units || []).map((unit) => ({ text: unit, about: "unit" })));
      if (/\bon\s+\w*$/.test(line)) return [...topics, ...subscriptions].map((one) => ({ text: one.name, about: one.attributes ? "topic" : one.kind }));
      const on = [...text.slice(0, editor.indexFromPos(editor.getCursor())).matchAll(/\bon\s+([\p{L}_]\w*)/gu)].pop()?.[1];
      for (const topic of [...topics].sort((a) => (a.name === on ? -1 : 1))) {
        options.push(...topic.attributes.map((one) => ({ text: one.name, about: `${topic.name}${one.unit ? `, ${one.unit}` : `, ${one.kind}`}` })));
      }
      options.push(...topics.map((one) => ({ text: one.name, about: "topic" })), ...subscriptions.map((one) => ({ text: one.name, about: one.kind })));
      options.push(...(words?.keywords || []).map((word) => ({ text: word, about: "" })));
      return [...new Map(options.map((one) => [one.text, one])).values()];
    }

    // --- over the past ---

    async function dryRun() {
      if (run.disabled) return;
      const end = app.now(), start = end - RANGES[range.value][1];
      run.disabled = true;
      tried = editor.getValue();
      found.classList.remove("stale");
      put(found, h("p", { class: "empty" }, "Reading the past …"));
      const begun = performance.now();
      try {
        const answer = await send("POST", "/api/dry-run", { text: tried, start: iso(start), end: iso(end) });
        if (!closed) showPast(answer, performance.now() - begun);
      } catch (error) {
        put(found, h("p", { class: "fault error" }, error.message));
      } finally { run.disabled = !checked?.ok; }
    }

    function showPast(it, took) {
      const names = [...new Set([...Object.keys(it.really), ...Object.keys(it.then)])];
      const differing = new Set([...Object.keys(it.more), ...Object.keys(it.fewer)]);
      const [more, fewer] = [it.more, it.fewer].map((counts) => Object.values(counts).reduce((sum, n) => sum + n, 0));
      const cell = (a, b, form = (n) => n.toLocaleString()) => [h("td", { class: "num" }, a === undefined || a === null ? "–" : form(a)), h("td", { class: "num strong" }, b === undefined || b === null ? "–" : form(b))];
      const long = (seconds) => showLength(seconds * SECOND);
      const canvas = h("canvas", { role: "img", "aria-label": "What was told, and what would have been" });
      const labels = h("div", { class: "labels" });
      const rows = pairs(it.timeline, app).filter((row) => !differing.size || differing.has(row.subscription)).slice(0, 80);
      put(found,
        h("p", { class: differing.size ? "verdict differs" : "verdict same" }, differing.size
          ? `It would have been told otherwise: ${more.toLocaleString()} ${more === 1 ? "start" : "starts"} more, ${fewer.toLocaleString()} fewer.`
          : "It would have told exactly what was told.", h("small", {}, ` ${showFull(it.timeline.start)} – ${showFull(it.timeline.end)}, computed in ${(took / 1000).toFixed(1)} s`)),
        h("div", { class: "scroll" }, h("table", { class: "grid compare" },
          h("thead", {},
            h("tr", {}, h("th", { rowspan: 2, scope: "col" }, "Subscription"), ["Starts", "Flaps", "Longest", "Mean"].map((one) => h("th", { colspan: 2, scope: "colgroup" }, one))),
            h("tr", {}, Array.from({ length: 4 }, () => [h("th", { scope: "col" }, "was"), h("th", { scope: "col" }, "would")]))),
          h("tbody", {}, names.map((name) => {
            const was = it.really[name] || {}, would = it.then[name] || {};
            return h("tr", { class: differing.has(name) ? "differs" : "" }, h("th", { scope: "row" }, h("i", { class: "dot", style: { "--is": app.colour(name) } }), name),
              cell(was.count ?? 0, would.count ?? 0), cell(was.flaps ?? 0, would.flaps ?? 0), cell(was.longest, would.longest, long), cell(was.mean, would.mean, long));
          })))),
        h("div", { class: "timeline small" }, labels, h("div", { class: "canvas" }, canvas)),
        list("Would start, and did not", it.only_then, more), list("Did start, and would not", it.only_really, fewer));
      put(labels, rows.map((row) => h("div", { class: "label", style: { height: `${ROW}px` } }, h("b", {}, row.subscription), " ", row.scope ?? "", h("small", { class: "faint" }, row.thin ? " was" : " would be"))));
      drawBars(canvas, rows, it.timeline, { now: app.now() });
    }

    function list(title, some, all) {
      if (!some.length) return null;
      return h("details", {}, h("summary", {}, all > 200 ? `${title} (the first 200 of ${all.toLocaleString()})` : `${title} (${all.toLocaleString()})`),
        h("ul", { class: "plain" }, some.slice(0, 200).map((one) => h("li", {}, h("b", {}, one.subscription), ` ${one.scope ?? ""} `,
          h("small", {}, `${showTime(instant(one.start), app.now())} – ${one.end === null ? "now" : showTime(instant(one.end), app.now())}`)))));
    }

    // --- saving ---

    function effects(it) {
      const names = (some) => some.map((name, i) => [i ? ", " : "", h("b", {}, name)]);
      const lines = [
        it.added.length && h("li", {}, names(it.added), it.added.length === 1 ? " is new; what the log says of it holds at once." : " are new; what the log says of them holds at once."),
        it.changed.length && h("li", {}, names(it.changed), it.changed.length === 1 ? " means something else than now." : " mean something else than now.", " What is known of each place is kept as far as it follows; the log settles the rest."),
        it.afresh.length && h("li", {}, names(it.afresh), it.afresh.length === 1 ? " cannot keep what is known of it: it begins afresh with the next reading." : " cannot keep what is known of them: they begin afresh with the next reading."),
        ...Object.entries(it.scopes || {}).map(([name, n]) => h("li", {}, h("b", {}, name), ": ", ["starts", "ends", "unknown"].filter((word) => n[word])
          .map((word) => `${word === "unknown" ? "becomes unknown" : word} in ${n[word].toLocaleString()} ${n[word] === 1 ? "place" : "places"}`).join(", "), ".")),
        it.scopes && it.changed.length > it.afresh.length && !Object.keys(it.scopes).length && h("li", {}, "No place changes by it."),
        it.removed.length && h("li", {}, names(it.removed), it.removed.length === 1 ? " ends." : " end."),
        it.holding.length && h("li", {}, `${it.holding.length.toLocaleString()} that hold now would be withdrawn: `,
          it.holding.slice(0, 8).map((one) => `${one.subscription} ${one.scope ?? ""}`).join(", "), it.holding.length > 8 ? " …" : ""),
      ].filter(Boolean);
      return h("div", { class: "effects" }, h("h3", {}, "If saved"), lines.length ? h("ul", {}, lines) : h("p", {}, "Nothing that runs changes its meaning: everything that holds goes on."));
    }

    async function keep() {
      const text = editor.getValue(), answer = await check(true);
      if (save.disabled || !answer?.ok) return;
      if (!await ask("Save this definition?", effects(answer.change), "Save")) return;
      try {
        await send("PUT", "/api/definition", { text, restart: answer.change.afresh });
        draft = null;
        await app.learn();
        say("Saved. It runs from the next reading on.");
        await check();
      } catch (error) { say(error.message, "bad"); }
    }

    function redrawn() {
      if (draft === null && editor.getValue() !== app.definition.text) editor.setValue(app.definition.text);
    }
    app.addEventListener("changed", redrawn);
    put(found, h("p", { class: "empty" }, "Change something, then look when it would have fired over the readings that are kept, beside what was really told. Nothing changes until you save."));
    if (!words) get("/api/words").then((known) => { words = known; editor.setOption("mode", mode(words)); }).catch((error) => say(error.message, "bad"));
    check();
    return () => { closed = true; app.removeEventListener("changed", redrawn); };
  },
};

// Each row twice: what was, and what would be.
function pairs(timeline, app) {
  const key = (row) => JSON.stringify([row.subscription, row.scope]);
  const was = new Map(timeline.really.map((row) => [key(row), row])), would = new Map(timeline.rows.map((row) => [key(row), row]));
  return [...new Set([...was.keys(), ...would.keys()])].sort().flatMap((one) => {
    const row = was.get(one) || would.get(one), colour = app.colour(row.subscription);
    return [
      { ...row, colour: "var(--faint)", bars: was.get(one)?.bars || [], thin: true },
      { ...row, colour, bars: would.get(one)?.bars || [] },
    ];
  });
}

// Colours for the words of the language, which the service knows.
function mode(known) {
  const keywords = (known?.keywords || ["topic", "state", "filter"]).join("|");
  CodeMirror.defineSimpleMode("holdfast", {
    start: [
      { regex: /#.*/, token: "comment" }, { regex: /"(?:\\.|[^"\\])*"/, token: "string" },
      { regex: /\b(topic)(\s+)([^\W\d]\w*)/, token: ["keyword", null, "def"] },
      { regex: /\b(state|filter|correlate|levels|region|let)(\s+)([^\W\d]\w*)/, token: ["keyword", null, "def"] },
      { regex: new RegExp(`\\b(?:${keywords})\\b`), token: "keyword" },
      { regex: /(?:\d+\.\d+|\d+|\.\d+)(?:[eE][+-]?\d+)?/, token: "number" },
      { regex: /&&|\|\||[<>=!≤≥≠]+/, token: "operator" }, { regex: /[^\W\d]\w*/, token: "variable" },
    ],
    meta: { lineComment: "#" },
  });
  return "holdfast";
}
