// Elements, numbers and words. Text from files only ever becomes text nodes.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "style") for (const [k, v] of Object.entries(value)) element.style.setProperty(k, v);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Escapes control, direction and invisible characters, so that names cannot imitate other names.
const shown = (text) =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

function significant(x) {
  if (x === 0) return "0";
  if (x < 0.0005) return "< 0.001";
  const digits = x >= 100 ? 0 : x >= 10 ? 1 : x >= 1 ? 2 : 3;
  return x.toFixed(digits);
}
const grouped = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, "\u202f");

function bytes(n) {
  if (n < 1024) return `${n} B`;
  let unit = "";
  for (const u of ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]) {
    n /= 1024;
    unit = u;
    if (n < 1024) break;
  }
  return `${significant(n)} ${unit}`;
}
function time(us) {
  if (us === null || us === undefined) return "unknown";
  if (us < 1000) return `${significant(us)} µs`;
  if (us < 1e6) return `${significant(us / 1e3)} ms`;
  return `${significant(us / 1e6)} s`;
}
function count(n) {
  if (n >= 1e9) return `${(n / 1e9).toFixed(2)} B`;
  if (n >= 1e6) return `${(n / 1e6).toFixed(1)} M`;
  return grouped(n);
}
const percent = (x) => `${x >= 0.1 ? (x * 100).toFixed(0) : significant(x * 100)} %`;
const plural = (n, one, many) => `${grouped(n)} ${n === 1 ? one : many ?? `${one}s`}`;

// Formats runs of numbers: 0–14, 17, 20–22.
function span(layers) {
  const out = [];
  for (let i = 0, j; i < layers.length; i = j + 1) {
    j = i;
    while (layers[j + 1] === layers[j] + 1) j += 1;
    out.push(i === j ? `${layers[i]}` : `${layers[i]}–${layers[j]}`);
  }
  return out.join(", ");
}

// One tooltip for all: `tips` maps elements to functions that return its lines.
const tips = new WeakMap();
const tipBox = h("div", { id: "tip", "aria-hidden": "true" });
function tip(element, lines) {
  tips.set(element, lines);
  element.setAttribute("data-tip", "");
  return element;
}
function showTip(event) {
  const element = event.target.closest?.("[data-tip]");
  const lines = element && tips.get(element);
  if (!lines) {
    tipBox.style.display = "none";
    return;
  }
  tipBox.replaceChildren(...lines().filter(Boolean).map((l) => h("div", {}, l)));
  tipBox.style.display = "block";
  const { width, height } = tipBox.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, innerWidth - width - 8);
  const y = event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18;
  tipBox.style.left = `${Math.max(4, x)}px`;
  tipBox.style.top = `${Math.max(4, y)}px`;
}
document.addEventListener("pointermove", showTip);
document.addEventListener("pointerdown", showTip);
document.addEventListener("scroll", () => (tipBox.style.display = "none"), true);
