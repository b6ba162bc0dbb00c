// The summary, the findings, and the memory of every place.

const SEVERITY = { error: ["✕", "Error"], warning: ["!", "Warning"], note: ["i", "Note"] };
const MODES = {
  none: () => "On one device",
  layer: (n) => `Whole layers on each of ${n} devices, in sequence`,
  tensor: (n) => `Tensors split over ${n} devices`,
  hybrid: (n) => `${n} devices in groups that follow each other; each group splits tensors`,
};

function tile(title, figure, unit, ...lines) {
  return h("div", { class: "tile" }, h("div", { class: "title" }, title), h("div", { class: "figure" }, figure, unit && h("small", {}, ` ${unit}`)), lines.map((l) => l && h("p", {}, l)));
}

const KINDS_OF_COLLECTIVE = [["all_reduce", "all-reduce"], ["all_gather", "all-gather"], ["reduce_scatter", "reduce-scatter"], ["all_to_all", "all-to-all"]];

// The number of collectives that most layers have.
function perLayer() {
  const counts = new Map();
  const layers = new Map();
  for (const { l, f } of DATA.stretches) {
    if (l === null) continue;
    layers.set(l, (layers.get(l) ?? 0) + DATA.flows[f].filter((s) => s.b && s.f === undefined).length);
  }
  layers.forEach((n) => counts.set(n, (counts.get(n) ?? 0) + 1));
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}

function head() {
  const theme = h("button", { type: "button", click: toggleTheme, id: "theme" }, "Dark");
  const print = h("button", { type: "button", click: () => window.print() }, "Print");
  const m = PLAN?.model;
  return h("div", { class: "top" },
    h("div", {},
      h("div", { class: "brand" }, h("b", {}, "tpc"), " plan"),
      h("h1", {}, PLAN ? shown(m.name) : "No plan"),
      h("p", { class: "facts" }, PLAN ? [`${shown(m.arch)} · ${plural(m.n_layer, "layer")} · ${count(m.n_params)} parameters · ${bytes(m.bytes)} · `, h("code", {}, shown(m.path))] : h("code", {}, shown(DATA.path)))),
    h("div", { class: "tools" }, theme, print));
}

function toggleTheme() {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  setTheme(next);
  try { localStorage.setItem("tpc-theme", next); } catch { /* Without storage, the choice is lost with the page. */ }
}
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  if (!button) return;
  const other = theme === "dark" ? "Light" : "Dark";
  button.textContent = other;
  button.setAttribute("aria-label", `${other} colours`);
}

function verdict() {
  const found = PLAN ? PLAN.diagnostics : DATA.refused;
  const errors = found.filter((d) => d.severity === "error").length;
  const ok = PLAN && PLAN.verdict === "ok";
  const words = ok ? "Plan verified" : PLAN ? `Plan has ${plural(errors, "error")}` : "The model cannot be planned";
  const others = ["warning", "note"].map((s) => [found.filter((d) => d.severity === s).length, s]).filter(([n]) => n);
  return h("div", { class: "verdict" },
    h("span", { class: `badge ${ok ? "ok" : "error"}` }, h("span", { "aria-hidden": "true" }, ok ? "✓" : "✕"), words),
    PLAN && h("span", {}, `${fitting()} ${MODES[PLAN.split_mode](DEVICES.length)}, context ${grouped(PLAN.model.n_ctx)}`),
    others.map(([n, s]) => h("a", { href: "#findings", class: "small" }, plural(n, s))));
}

// Bytes that the plan may use of a device, or of the host; null if unknown.
function usable(d, i) {
  const profile = i === HOST ? PLAN.machine.host : PLAN.machine.devices[i];
  if (!profile || profile.memory === null) return null;
  return Math.max(0, profile.memory - profile.reserve);
}
const rooms = () => [...DEVICES.map((d, i) => [d, usable(d, i)]), [PLAN.host, usable(PLAN.host, HOST)]];

function fitting() {
  if (rooms().some(([d, room]) => room !== null && d.total_bytes > room)) return "The plan does not fit.";
  return DEVICES.some((d, i) => usable(d, i) !== null) ? "The plan fits." : "No memory is given, so tpc cannot tell if the plan fits.";
}

const PROGRAMS = [["tpc", "tpc"], ["ik_llama.cpp", "ik_llama.cpp"], ["llama.cpp", "llama.cpp"], ["llama.cpp_by_layers", "llama.cpp, by layers"]];

// The commands that run the plan, or the reason why a program cannot.
function commands() {
  const all = PLAN.commands;
  const rows = PROGRAMS.filter(([k]) => all[k] ?? all[`${k}_reason`]).map(([k, name]) => h("div", {},
    h("p", { class: "small dim" }, name),
    all[k] ? h("pre", { class: "why" }, shown(all[k])) : h("p", {}, `not possible; ${shown(all[`${k}_reason`])}`)));
  return rows.length ? h("section", { id: "run" }, h("header", {}, h("h2", {}, "Run it")), h("div", { class: "card" }, rows)) : null;
}

function tiles() {
  const { estimate: e, collectives: { decode: c }, model: m, mirrored: x } = PLAN;
  const [, prefill] = DATA.batches;
  const [figure, unit] = time(e.decode_us).split(" ");
  const [pre, preUnit] = time(e.prefill_us).split(" ");
  const ratio = e.baseline_single_us / e.decode_us;
  const places = [...DEVICES, ...(PLAN.host.total_bytes ? [PLAN.host] : [])];
  const full_of = (i) => { const room = usable(DEVICES[i], i); return DEVICES[i].total_bytes / (room === null ? 2 ** 63 : Math.max(1, room)); };
  const at = DEVICES.reduce((a, _, i) => (full_of(i) > full_of(a) ? i : a), 0);
  const fullest = DEVICES[at];
  const room = usable(fullest, at);
  const [full, fullUnit] = bytes(fullest.total_bytes).split(" ");
  const per = perLayer();
  const all = sum(KINDS_OF_COLLECTIVE.map(([k]) => c[k]));
  const kinds = KINDS_OF_COLLECTIVE.filter(([k]) => c[k]).map(([k, w]) => plural(c[k], w)).join(", ");
  const causes = [["whole_bytes", "whole tensors"], ["edge_block_bytes", "edge blocks"], ["shared_head_bytes", "shared KV heads"]];
  const held = causes.filter(([k]) => x[k]).map(([k, w]) => `${w} ${bytes(x[k])}`).join(", ");
  const [twice, twiceUnit] = bytes(PLAN.mirrored_bytes).split(" ");
  return h("div", { class: "tiles card" },
    tile("Per token, estimated", figure, unit, `${significant(e.decode_tps)} tokens/s at depth ${grouped(e.depth)}${band(e)}, by the profile of ${e.engine}`,
      DEVICES.length > 1 && `${speed(ratio)} (${time(e.baseline_single_us)})`),
    tile("Per prompt batch", pre, preUnit, `${grouped(prefill.tokens)} tokens at once; ${grouped(e.prompt_tps)} tokens/s`),
    tile("Fullest device", full, fullUnit, room === null ? `${shown(fullest.name)}; its memory is not given` : `${shown(fullest.name)}: ${percent(fullest.total_bytes / Math.max(1, room))} of ${bytes(room)}`, `${bytes(sum(places.map((p) => p.total_bytes)))} in all`),
    tile("Collectives per token", grouped(all), "", all ? `${kinds}${per ? `; ${per} in most layers` : ""}` : "not needed", `${plural(c.copies, "copy", "copies")}; ${bytes(c.bytes)} moved`),
    tile("Stored more than once", twice, twiceUnit, `${percent(PLAN.mirrored_bytes / Math.max(1, m.bytes))} of the model`, held));
}

function band(e) {
  if (!e.band) return "";
  const range = `${significant(e.band.low_tps)} to ${significant(e.band.high_tps)}`;
  return e.calibrated ? `, in nine of ten cases ${range}` : `, not calibrated for ${e.not_calibrated_for.join(" nor for ")}: perhaps ${range}`;
}

function speed(ratio) {
  if (ratio > 1.02) return `${significant(ratio)} times as fast as one device`;
  return ratio < 0.98 ? `${significant(1 / ratio)} times as slow as one device` : "as fast as one device";
}

function findings() {
  const found = (PLAN ? PLAN.diagnostics : DATA.refused).slice();
  if (!found.length) return null;
  const order = ["error", "warning", "note"];
  found.sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
  const one = (d) => {
    const about = d.entity && !d.message.includes(d.entity) ? `${shown(d.entity)}: ` : "";
    const [icon, word] = SEVERITY[d.severity];
    return h("div", { class: "finding", role: "listitem" },
      h("div", { class: `sort ${d.severity}` }, h("span", { "aria-hidden": "true" }, `${icon} `), word, h("code", {}, d.code)),
      h("div", {}, h("p", {}, about, shown(d.message)), d.help && h("p", { class: "help" }, h("b", {}, "Cure: "), shown(d.help))));
  };
  const card = h("div", { class: "card", role: "list" }, found.slice(0, 8).map(one));
  if (found.length > 8) {
    const rest = h("button", { type: "button", click: () => { card.append(...found.slice(8).map(one)); rest.remove(); } }, `Show ${found.length - 8} more`);
    return h("section", { id: "findings" }, h("header", {}, h("h2", {}, "Findings")), card, h("p", {}, rest));
  }
  return h("section", { id: "findings" }, h("header", {}, h("h2", {}, "Findings")), card);
}

const MEMORY = [["weights_bytes", "weights", "solid"], ["kv_bytes", "KV cache", "cache"], ["state_bytes", "state", "state"], ["compute_bytes", "compute", "work"]];

// One row per device. If there are many devices, neighbours with equal memory share a row.
function alike(devices) {
  const out = [];
  const same = (a, b) => [...MEMORY.map(([k]) => k), "capacity_bytes"].every((k) => a[k] === b[k]);
  devices.forEach((d, i) => {
    const last = out.at(-1);
    if (devices.length > 16 && last && same(last[0], d)) last[2] = i;
    else out.push([d, i, i]);
  });
  return out;
}

// The part of the memory that belongs to drafting blocks.
function drafts() {
  if (!PLAN.drafts) return null;
  const { blocks, devices, host, collectives: { decode: c } } = PLAN.drafts;
  const held = [...devices, host].map((d) => d.weights_bytes + d.kv_bytes);
  const moved = `${plural(sum(KINDS_OF_COLLECTIVE.map(([k]) => c[k])), "collective")} and ${plural(c.copies, "copy", "copies")} with ${bytes(c.bytes)} per token`;
  return h("p", { class: "small dim" }, `Of this, ${plural(blocks, "drafting block", "drafting blocks")}: ${bytes(sum(held))} in all, at most ${bytes(Math.max(...held))} in one place; ${moved}.`);
}

function memory() {
  const rows = [...alike(DEVICES), ...(PLAN.host.total_bytes ? [[PLAN.host, HOST, HOST]] : [])];
  const columns = MEMORY.filter(([k]) => rows.some(([d]) => d[k]));
  // One scale for all, unless a place has far more memory than the plan uses.
  const used = Math.max(...rows.map(([d]) => d.total_bytes));
  const room = Math.max(...rows.map(([d, i]) => usable(d, i) ?? 0));
  const scale = Math.max(used, Math.min(room, used * 3)) * 1.02;
  const bar = (d, i) => {
    const out = svg("svg", { height: 22, role: "img", "aria-label": columns.map(([k, w]) => `${w} ${bytes(d[k])}`).join(", ") });
    const share = (n) => `${((Math.min(n, scale) / scale) * 100).toFixed(3)}%`;
    const capacity = usable(d, i);
    out.append(svg("rect", { x: 0, y: 3, width: capacity === null ? "100%" : share(capacity), height: 16, fill: "var(--track)" }));
    let at = 0;
    for (const [k, word, fillWith] of columns) {
      if (!d[k]) continue;
      const part = svg("rect", { x: share(at), y: 3, width: share(Math.max(d[k], scale * 0.002)), height: 16, fill: texture(fillWith, i), stroke: "var(--surface)", "stroke-width": 1 });
      out.append(tip(part, () => [`${deviceName(i)}: ${word}`, bytes(d[k]), `${percent(d[k] / d.total_bytes)} of its bytes`, k === "compute_bytes" && d.staging_bytes ? `at most ${bytes(d.staging_bytes)} of it for copies and collectives` : null]));
      at += d[k];
    }
    if (capacity !== null) {
      if (at > capacity) out.append(svg("rect", { x: share(capacity), y: 3, width: share(at - capacity), height: 16, fill: "url(#over)" }));
      if (capacity <= scale) out.append(svg("rect", { x: share(capacity), y: 0, width: 2, height: 22, fill: "var(--ink)" }));
    }
    return out;
  };
  const load = (d, i) => {
    const room = usable(d, i);
    if (room === null) return ["not given", ""];
    const over = d.total_bytes - room;
    return over > 0 ? [`✕ ${bytes(over)} too many for ${bytes(room)}`, "error"] : [`${percent(d.total_bytes / Math.max(1, room))} of ${bytes(room)}`, ""];
  };
  const body = rows.map(([d, i, last]) => {
    const [words, sort] = load(d, i);
    return h("tr", {},
      h("td", {}, swatch(i), last !== i && h("span", { class: "dim" }, ` to ${deviceName(last)}`)), h("td", { class: "bar" }, bar(d, i)),
      columns.map(([k, w]) => h("td", { "data-name": w }, bytes(d[k]))),
      h("td", { "data-name": "total" }, h("b", {}, bytes(d.total_bytes))), h("td", { "data-name": "memory", class: sort }, words));
  });
  return h("section", { id: "memory" },
    h("header", {}, h("h2", {}, "Memory"), h("p", {}, "Counted from the devices' programs. All bars have the same scale; a thin vertical line marks the memory of a place.")),
    h("div", { class: `card memory ${rows.length > 17 ? "dense" : ""}` },
      h("table", {},
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "place"), h("th", { scope: "col" }, h("span", { class: "hidden" }, "to scale")), columns.map(([, w]) => h("th", { scope: "col" }, w)), h("th", { scope: "col" }, "total"), h("th", { scope: "col" }, "memory"))),
        h("tbody", {}, body)),
      drafts(),
      h("div", { class: "legend" }, columns.map(([, w, f]) => h("span", {}, key(texture(f, HOST)), w)),
        rows.some(([d, i]) => usable(d, i) !== null && d.total_bytes > usable(d, i)) && h("span", {}, key("url(#over)"), "beyond the memory"))));
}

function considered() {
  const all = PLAN.considered;
  if (all.length < 2) return null;
  const head = ["strategy", "tokens/s", "prompt tokens/s", "per token", "prompt batch", "fullest device", "fits", "price"];
  return h("section", { id: "ways" },
    h("header", {}, h("h2", {}, "Strategies compared"), h("p", {}, "The price is in µs per token; it includes four prompt tokens and the bytes held. Auto takes the cheapest strategy that fits.")),
    h("div", { class: "card plain" }, h("table", {},
      h("thead", {}, h("tr", {}, head.map((w) => h("th", { scope: "col" }, w)))),
      h("tbody", {}, all.map((c) => h("tr", { class: c.chosen && "chosen" },
        h("td", {}, c.chosen ? `✓ ${c.name}` : c.name), h("td", {}, `${significant(c.decode_tps)}${c.within_error && !c.chosen ? " (within the model's error)" : ""}`), h("td", {}, grouped(c.prompt_tps)), h("td", {}, time(c.decode_us)), h("td", {}, time(c.prefill_us)),
        h("td", {}, bytes(c.fullest_bytes)), h("td", {}, c.fits ? "yes" : "no"), h("td", {}, significant(c.cost_us))))))));
}

function reasons() {
  if (!DATA.why) return null;
  return h("section", { id: "why" }, h("header", {}, h("h2", {}, "Why")), h("div", { class: "card" }, h("pre", { class: "why" }, DATA.why)));
}

function assumptions() {
  const m = PLAN.machine;
  const rate = (x, unit) => (x >= 1e12 ? `${significant(x / 1e12)} T${unit}` : `${significant(x / 1e9)} G${unit}`);
  const link = (l) => `${rate(l.bandwidth, "B/s")}, ${significant(l.latency_us)} µs`;
  const profiles = [...new Set(m.devices.map((d) => `${shown(d.name)}: ${rate(d.bandwidth, "B/s")}, ${rate(d.flops, "FLOP/s")}`))];
  const s = PLAN.search;
  return h("footer", {},
    h("p", {}, h("b", {}, m.assumed ? "Assumed machine (no --topology was given): " : "Machine: "), profiles.join("; "), `; host ${rate(m.host.bandwidth, "B/s")}, ${rate(m.host.flops, "FLOP/s")}; link between devices ${link(m.link)}; to the host ${link(m.host_link)}.`),
    h("p", {}, "Times are estimates of a cost model, not measurements."),
    h("p", {}, `Search: ${plural(s.distinct, "distinct part")}, ${plural(s.priced, "set")} of splits priced; ${s.optimal ? "cheapest by the cost model" : `at most ${Math.ceil(100 * s.at_most_above)} % above the cheapest by the cost model`}.`));
}
