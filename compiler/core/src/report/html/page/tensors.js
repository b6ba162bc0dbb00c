// The tensors: search, filters, a list that draws only visible rows, and the details of one tensor.

function tensorBrowser() {
  const state = { text: "", sort: "order", each: false, open: null, focus: 0, pick: { what: "", type: "", split: "", device: "" } };
  let items = [];

  const distinct = (f) => [...new Set(TENSORS.flatMap(f))];
  const choices = {
    what: ["Tensors", ["weights", "caches and states"].filter((w, i) => TENSORS.some((g) => Boolean(g.t.s) === Boolean(i)))],
    type: ["Type", distinct((g) => [g.t.t]).sort()],
    split: ["Split", distinct((g) => g.kinds).sort()],
    device: ["Held by", LANES.filter((d) => TENSORS.some((g) => g.place.lanes.includes(d))).map(deviceName)],
  };
  const matches = (g) => {
    const p = state.pick;
    if (p.what && (p.what === "weights") === Boolean(g.t.s)) return false;
    if (p.type && p.type !== g.t.t) return false;
    if (p.split && !g.kinds.includes(p.split)) return false;
    if (p.device) {
      const i = g.place.lanes.findIndex((d) => deviceName(d) === p.device);
      if (i < 0 || !g.bytes[i]) return false;
    }
    return true;
  };
  const shapeOf = (g) => g.t.d.slice(0, rank(g.t.d)).join("×");

  function update() {
    const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
    const r = selection.range;
    const inside = r && new Set(LAYERS.slice(r[0], r[1] + 1).map((x) => x.l));
    items = [];
    for (const g of TENSORS) {
      if (!matches(g)) continue;
      const rest = ` ${g.t.t} ${shapeOf(g)} ${g.label} ${g.kinds.join(" ")} ${shown(g.place.name)}`.toLowerCase();
      const layers = g.layers.filter((l) => {
        if (inside && !inside.has(l)) return false;
        const all = nameIn(g.t.n, l).toLowerCase() + rest;
        return words.every((w) => all.includes(w));
      });
      if (!layers.length) continue;
      if (state.each) layers.forEach((l) => items.push({ g, layers: [l] }));
      else items.push({ g, layers });
    }
    const weight = (i) => sum(i.g.bytes) * i.layers.length;
    if (state.sort === "bytes") items.sort((a, b) => weight(b) - weight(a));
    else if (state.each) items.sort((a, b) => (a.layers[0] ?? -1) - (b.layers[0] ?? -1));
    const n = sum(items.map((i) => i.layers.length));
    const all = sum(TENSORS.map((g) => g.layers.length));
    found.textContent = `${n === all ? "" : `${grouped(n)} of `}${plural(all, "tensor")}, ${bytes(sum(items.map(weight)))} held`;
    bytesHead.textContent = state.sort === "bytes" ? "bytes ↓" : "bytes";
    bytesHead.setAttribute("aria-pressed", "false");
    list.setAttribute("aria-rowcount", String(items.length + 1));
    state.focus = 0;
    list.scrollTop = 0;
    draw();
  }

  const found = h("span", { class: "found", role: "status" });
  const search = h("input", { type: "search", id: "search", placeholder: "name, type, shape, axis 1, mirrored …", autocomplete: "off", spellcheck: "false", input: () => { state.text = search.value; update(); } });
  search.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown") { e.preventDefault(); focusRow(0); }
    if (e.key === "Escape" && search.value) { search.value = ""; state.text = ""; update(); }
  });
  const picks = Object.entries(choices).map(([name, [title, options]]) => {
    const box = h("select", { id: `pick-${name}`, change: () => { state.pick[name] = box.value; update(); } }, h("option", { value: "" }, "all"), options.map((o) => h("option", { value: o }, o)));
    return h("label", {}, title, box);
  });
  const each = h("button", { type: "button", "aria-pressed": "false", click: () => { state.each = !state.each; each.setAttribute("aria-pressed", String(state.each)); update(); } }, "One by one");
  tip(each, () => ["A row for every tensor", "instead of one row for all equal layers"]);
  const reset = h("button", { type: "button", click: () => {
    search.value = state.text = "";
    for (const k of Object.keys(state.pick)) { state.pick[k] = ""; document.getElementById(`pick-${k}`).value = ""; }
    select(null);
  } }, "Reset");

  const bytesHead = h("button", { type: "button", click: () => { state.sort = state.sort === "bytes" ? "order" : "bytes"; update(); } }, "bytes");
  const heads = h("div", { class: "heads", role: "row" }, ["tensor", "type", "shape", "split, to scale", "axis and sizes"].map((w) => h("div", { role: "columnheader" }, w)), h("div", { role: "columnheader", class: "num" }, bytesHead));
  const body = h("div", { class: "body", role: "rowgroup" });
  const list = h("div", { class: "list card", role: "grid", "aria-label": "Tensors" }, heads, body);
  const laneHeight = Math.max(16, Math.min(34, LANES.length * 4.4));
  const detail = h("aside", { class: "detail card rest", "aria-live": "polite", "aria-label": "Details" });

  const narrow = matchMedia("(max-width: 720px)");
  const rowHeight = () => (narrow.matches ? laneHeight + 70 : Math.max(46, laneHeight + 14));

  function rowOf(i) {
    const { g, layers } = items[i];
    const name = nameIn(g.t.n, layers.length === 1 ? layers[0] : null);
    const where = layers[0] === null ? (g.t.s ? "state" : "outside layers") : layers.length === 1 ? `layer ${layers[0]}` : `${plural(layers.length, "layer")}: ${span(layers)}`;
    const axis = shapeOf(g).split("×").map((n, a) => [a ? "×" : "", a === g.axis && g.ranges ? h("b", {}, n) : n]);
    const whole = sum(g.bytes);
    const equal = g.bytes.every((b) => b === g.bytes[0]);
    const split = g.ranges ? lens(g.lens) : g.place.devices.length > 1 ? `on ${g.place.devices.length} devices` : "";
    const flags = [g.pieces > 1 && "segments", g.twice.length && "held twice"].filter(Boolean).join(", ");
    const row = h("div", { class: "row", role: "row", tabindex: i === state.focus ? 0 : -1, "aria-rowindex": String(i + 2), "aria-selected": String(state.open === items[i].g && sameLayers(i)), style: { top: `${i * rowHeight()}px`, height: `${rowHeight()}px` } },
      h("div", { class: "c-name", role: "gridcell" }, h("div", { class: "name" }, name), h("div", { class: "sub" }, where)),
      h("div", { class: "c-type", role: "gridcell" }, g.t.t),
      h("div", { class: "c-shape", role: "gridcell" }, axis),
      h("div", { class: "c-lanes", role: "gridcell" }, lanes(g, laneHeight), h("span", { class: "hidden" }, `${g.label} ${split}`)),
      h("div", { class: "c-split", role: "gridcell" }, h("div", {}, g.label, flags && ` · ${flags}`), h("div", { class: "sub" }, split)),
      h("div", { class: "num c-bytes", role: "gridcell" }, h("div", {}, bytes(whole)), h("div", { class: "sub" }, g.bytes.length > 1 && equal ? `${g.bytes.length} × ${bytes(g.bytes[0])}` : "")));
    row.addEventListener("click", () => open(i));
    return row;
  }
  const sameLayers = (i) => state.openLayers === items[i].layers.join();

  function draw(all = false) {
    const tall = rowHeight();
    body.style.height = `${items.length * tall}px`;
    if (!items.length) {
      body.replaceChildren(h("div", { class: "empty" }, "No tensor matches. ", h("button", { type: "button", click: () => reset.click() }, "Reset the filters")));
      return;
    }
    const first = all ? 0 : Math.max(0, Math.floor(list.scrollTop / tall) - 4);
    const last = all ? Math.min(items.length, 600) : Math.min(items.length, Math.ceil((list.scrollTop + list.clientHeight) / tall) + 4);
    const focused = body.contains(document.activeElement);
    body.replaceChildren(...Array.from({ length: Math.max(0, last - first) }, (_, i) => rowOf(first + i)));
    if (focused) body.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }
  function focusRow(i) {
    if (!items.length) return;
    state.focus = Math.max(0, Math.min(items.length - 1, i));
    const tall = rowHeight();
    const top = state.focus * tall;
    if (top < list.scrollTop) list.scrollTop = top;
    if (top + tall * 2 > list.scrollTop + list.clientHeight) list.scrollTop = top + tall * 2 - list.clientHeight;
    draw();
    body.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }
  list.addEventListener("scroll", () => draw());
  list.addEventListener("keydown", (e) => {
    if (!e.target.closest(".row")) return;
    const page = Math.max(1, Math.floor(list.clientHeight / rowHeight()) - 1);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -items.length, End: items.length }[e.key];
    if (step) { e.preventDefault(); focusRow(state.focus + step); }
    else if (e.key === "Enter" || e.key === " ") { e.preventDefault(); open(state.focus); }
    else if (e.key === "Escape") close();
  });

  function open(i) {
    state.focus = i;
    state.open = items[i].g;
    state.openLayers = items[i].layers.join();
    detail.className = "detail card open";
    detail.replaceChildren(...details(items[i]));
    detail.scrollTop = 0;
    draw();
  }
  function close() {
    state.open = null;
    detail.className = "detail card rest";
    detail.replaceChildren(...howToRead());
    draw();
  }
  detail.addEventListener("keydown", (e) => { if (e.key === "Escape") { close(); focusRow(state.focus); } });

  function details({ g, layers }) {
    const name = nameIn(g.t.n, layers.length === 1 ? layers[0] : null);
    const facts = [
      ["layers", layers[0] === null ? "outside" : span(layers)],
      ["type", DATA.blocks[g.t.t] ? `${g.t.t}, blocks of ${DATA.blocks[g.t.t]} along axis 0` : g.t.t],
      ["shape", g.t.d.slice(0, rank(g.t.d)).map((n, a) => `${a === g.axis && g.ranges ? "▸" : ""}${n}`).join(" × ")],
      ["split", `${g.label}${g.pieces > 1 ? `, up to ${plural(g.pieces, "segment")} per device` : ""}`],
      ["place", g.place.devices.length ? g.place.devices.map(deviceName).slice(0, 10).join(", ") + (g.place.devices.length > 10 ? " …" : "") : "host"],
      ["bytes held", bytes(sum(g.bytes)) + (layers.length > 1 ? ` in each layer, ${bytes(sum(g.bytes) * layers.length)} in all` : "")],
    ];
    const out = [
      h("button", { type: "button", class: "close", click: close, "aria-label": "Close the details" }, "✕"),
      h("h3", { class: "title" }, name),
      h("dl", {}, facts.map(([k, v]) => [h("dt", {}, k), h("dd", {}, v)])),
      lanes(g, Math.max(40, Math.min(120, LANES.length * 12))),
      g.ranges && h("div", { class: "ticks" }, [0, 0.25, 0.5, 0.75, 1].map((x) => h("span", {}, grouped(g.size * x)))),
    ];
    const ranges = (i) => {
      if (!g.ranges) return "whole tensor";
      const runs = g.ranges[i];
      if (!runs.length) return "nothing";
      const words = runs.slice(0, 6).map(([start, length, stride, n]) => (n ? `${grouped(n)} × ${grouped(length)}, every ${grouped(stride)} from ${grouped(start)}` : `${grouped(start)}–${grouped(start + length - 1)}`));
      return words.join(", ") + (runs.length > 6 ? ` and ${runs.length - 6} more` : "");
    };
    out.push(h("table", {},
      h("thead", {}, h("tr", {}, ["device", g.ranges ? `indices of axis ${g.axis}` : "indices", "number", "bytes"].map((w) => h("th", { scope: "col" }, w)))),
      h("tbody", {}, g.place.lanes.map((d, i) => h("tr", {}, h("td", {}, swatch(d)), h("td", {}, ranges(i)), h("td", {}, g.ranges ? grouped(g.lens[i]) : ""), h("td", {}, bytes(g.bytes[i])))))));
    if (g.twice.length) {
      out.push(h("h4", {}, `Held by more than one device: ${g.cause}`), h("ul", {}, g.twice.slice(0, 8).map(([a, b, who]) => h("li", {}, `${grouped(a)}–${grouped(b - 1)} by ${who.map((i) => deviceName(g.place.lanes[i])).join(", ")}`)), g.twice.length > 8 && h("li", {}, `and ${g.twice.length - 8} more`)));
    }
    const readers = readersOf(g, layers[0]);
    if (readers.length) {
      out.push(h("h4", {}, "Read by"), h("ul", {}, readers.map((s) => h("li", {}, h("code", {}, s.op), ` → ${nameIn(s.n, layers[0])}: ${time(slowest(s, 0))} per token${s.x ? ", a partial sum" : ""}`))));
    }
    out.push(h("h4", {}, "Why this split?"), h("p", { class: "small" }, h("code", {}, `tpc plan … --why '${nameIn(g.t.n, layers[0])}'`)));
    return out.filter(Boolean);
  }
  const readersOf = (g, layer) => {
    const wanted = JSON.stringify(g.t.n);
    const seen = new Set();
    return DATA.stretches.filter((s) => layer === null || s.l === layer).flatMap((s) => DATA.flows[s.f]).filter((s) => {
      const what = JSON.stringify([s.op, s.n]);
      if (JSON.stringify(s.w) !== wanted || seen.has(what)) return false;
      seen.add(what);
      return true;
    }).slice(0, 6);
  };

  function howToRead() {
    const two = DEVICES.length > 1 ? [0, 1] : [0];
    const place = { lanes: two, devices: two };
    const example = (what, words) => [h("p", {}, words), lanes({ place, ...what }, 8 * two.length, two)];
    return [h("div", { class: "howto" },
      h("h2", {}, "How to read a split"),
      h("p", {}, "A lane per device, in order; the split axis runs from left to right, to scale. Grey parts are not on the device."),
      two.length > 1 ? [
        example({ ranges: [[[0, 50]], [[50, 50]]], size: 100 }, "Split: each device has a range."),
        example({ ranges: [[[0, 30], [60, 10], [80, 10]], [[30, 30], [70, 10], [90, 10]]], size: 100 }, "Segments: fused tensors are split part by part."),
        example({ ranges: [[[0, 54]], [[46, 54]]], size: 100, twice: [[46, 54]] }, "Framed: indices that two devices hold, for a block or a KV head that cannot be cut."),
        example({}, "Mirrored: every device holds the whole tensor."),
        example({ partial: true }, "Partial: the sum over the devices is pending (timeline steps only)."),
      ] : example({}, "One device holds the whole tensor."),
      h("p", {}, h("kbd", {}, "/"), " search  ", h("kbd", {}, "↑"), " ", h("kbd", {}, "↓"), " rows  ", h("kbd", {}, "Enter"), " details  ", h("kbd", {}, "Esc"), " close  ", h("kbd", {}, "t"), " theme"))];
  }

  document.addEventListener("keydown", (e) => {
    if (e.target.closest?.("input, select, textarea") || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "/") { e.preventDefault(); search.focus(); }
    if (e.key === "t") toggleTheme();
  });
  addEventListener("beforeprint", () => draw(true));
  addEventListener("afterprint", () => draw());
  new ResizeObserver(() => draw()).observe(list);
  selection.listeners.push(update);
  const layersChip = h("button", { type: "button", class: "chip", hidden: true, click: () => select(null) });
  selection.listeners.push((r) => { layersChip.hidden = !r; if (r) layersChip.textContent = `${rangeName(r)} ✕`; });
  detail.append(...howToRead());
  const section = h("section", { id: "tensors" },
    h("header", {}, h("h2", {}, "Tensors"), h("p", {}, "Equal layers share a row. The bold size is the split axis.")),
    h("div", { class: "filters", role: "search" }, h("label", { class: "grow" }, "Search", search), picks, each, layersChip, reset, found),
    h("div", { class: "browse" }, list, detail));
  return { section, start: update };
}
