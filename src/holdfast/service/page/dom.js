// Nodes out of plain values. Text only ever becomes text: nothing that somebody named runs as markup.

export function h(tag, properties = {}, ...children) {
  const svg = SVG.has(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) node.style.setProperty(key, one);
    else if (name === "value" && !svg) node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...flat(children));
  return node;
}

const SVG = new Set(["svg", "g", "rect", "polygon", "circle", "text", "tspan", "path", "pattern", "defs", "line", "title"]);

function flat(children) {
  return children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false)
    .map((one) => (one instanceof Node ? one : document.createTextNode(String(one))));
}

// Other children in place of these; who was on one of them by keyboard stays on its successor.
export function put(node, ...children) {
  const active = node.contains(document.activeElement) && node !== document.activeElement ? named(document.activeElement) : null;
  node.replaceChildren(...flat(children));
  if (active) [...node.querySelectorAll("a, button, input, select, [tabindex]")].find((one) => named(one) === active)?.focus({ preventScroll: true });
  return node;
}

const named = (node) => [node.tagName, node.dataset.name || node.getAttribute("aria-label") || node.textContent, node.getAttribute("href")].join(" ");

// A function that runs once things have been quiet for a moment.
export function calm(milliseconds, work) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), milliseconds);
  };
}

// A colour for each subscription, the same everywhere; the style sheet says which.
export function colour(names, name) {
  const at = names.indexOf(name);
  return `var(--c${(at < 0 ? hash(name) : at) % 8})`;
}

function hash(text) {
  let sum = 0;
  for (const letter of text) sum = (sum * 31 + letter.codePointAt(0)) >>> 0;
  return sum;
}

export function painted(node, value) {
  return getComputedStyle(node).getPropertyValue(value.replace(/^var\((.*)\)$/, "$1")).trim() || value;
}

let toasts;
export function say(text, kind = "") {
  if (!toasts) document.body.append((toasts = h("div", { class: "toasts", role: "status" })));
  const toast = h("div", { class: `toast ${kind}` }, text);
  toasts.append(toast);
  setTimeout(() => toast.remove(), kind === "bad" ? 9000 : 4000);
}

// Asks in a dialog; resolves with whether it was confirmed.
export function ask(title, body, yes, kind = "primary") {
  return new Promise((resolve) => {
    const dialog = h("dialog", {}, h("form", { method: "dialog" },
      h("h2", {}, title), body,
      h("div", { class: "buttons" },
        h("button", { value: "no" }, "Cancel"), h("button", { value: "yes", class: kind, autofocus: true }, yes))));
    dialog.addEventListener("close", () => { dialog.remove(); resolve(dialog.returnValue === "yes"); });
    document.body.append(dialog);
    dialog.showModal();
  });
}
