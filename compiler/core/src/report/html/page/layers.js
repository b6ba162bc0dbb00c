// Layers by devices: the bytes of each layer on each device, to scale. Selects layers.

function layerMap() {
  const n = LAYERS.length;
  const rows = LANES.length;
  const height = Math.max(9, Math.min(34, 230 / rows));
  // Bytes per layer and lane: own weights, weights that all devices hold, caches.
  const cells = LAYERS.map(({ l, k }) => {
    const out = LANES.map(() => ({ own: 0, copy: 0, cache: 0 }));
    for (const t of DATA.kinds[k]) {
      const place = PLACES[t.p];
      const sort = t.s ? "cache" : t.a === undefined && place.devices.length > 1 ? "copy" : "own";
      place.lanes.forEach((d, i) => { out[LANES.indexOf(d)][sort] += t.b[Math.min(i, t.b.length - 1)]; });
    }
    return { l, k, out };
  });
  const total = (c) => c.own + c.copy + c.cache;
  const most = Math.max(1, ...cells.flatMap((c) => c.out.map(total)));
  const drawing = svg("svg", { class: "cells", height: rows * height, "aria-hidden": "true" });
  const share = (x) => `${((x / n) * 100).toFixed(4)}%`;
  const gap = Math.min(0.12, n / 1000);
  LANES.forEach((d, i) => drawing.append(svg("rect", { x: 0, y: (i + 1) * height - 1, width: "100%", height: 1, fill: "var(--line)" })));
  cells.forEach(({ out }, x) => out.forEach((c, i) => {
    let y = (i + 1) * height - 1;
    for (const [sort, fillWith] of [["own", "solid"], ["copy", "copy"], ["cache", "cache"]]) {
      if (!c[sort]) continue;
      const tall = Math.max(0.6, (c[sort] / most) * (height - 3));
      y -= tall;
      drawing.append(svg("rect", { x: share(x + gap / 2), y, width: share(1 - gap), height: tall, fill: texture(fillWith, LANES[i]) }));
    }
  }));
  const letter = (k) => (k < 26 ? String.fromCharCode(65 + k) : `K${k}`);
  const buttons = cells.map(({ l, k, out }, i) => {
    const words = () => [
      l === null ? "outside layers: embedding, output" : `layer ${l}`,
      `kind ${letter(k)}: ${plural(DATA.kinds[k].length, "tensor")}, ${bytes(sum(out.map(total)))} in all`,
      ...(out.every((c) => total(c) === total(out[0]) && rows > 2) ? [`${bytes(total(out[0]))} on each`] : out.slice(0, 12).map((c, j) => `${deviceName(LANES[j])}: ${bytes(total(c))}`)),
    ];
    return tip(h("button", { type: "button", tabindex: i ? -1 : 0, "aria-pressed": "false", "aria-label": `${l === null ? "outside layers" : `layer ${l}`}, kind ${letter(k)}, ${bytes(sum(out.map(total)))}` }), words);
  });
  const columns = h("div", { class: "columns", role: "group", "aria-label": "Layers; arrow keys move, Shift extends, Enter chooses, Escape clears" }, buttons);

  let anchor = 0;
  let dragging = false;
  const at = (event) => buttons.indexOf(event.target.closest?.("button"));
  const to = (i) => select([Math.min(anchor, i), Math.max(anchor, i)]);
  columns.addEventListener("pointerdown", (e) => {
    const i = at(e);
    if (i < 0) return;
    const r = selection.range;
    if (r && r[0] === i && r[1] === i && !e.shiftKey) return select(null);
    if (!e.shiftKey) anchor = i;
    dragging = true;
    to(i);
  });
  columns.addEventListener("pointerover", (e) => { if (dragging && at(e) >= 0) to(at(e)); });
  document.addEventListener("pointerup", () => { dragging = false; });
  columns.addEventListener("keydown", (e) => {
    const i = at(e);
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -n, End: n, PageUp: -10, PageDown: 10 }[e.key];
    if (step) {
      e.preventDefault();
      const next = Math.max(0, Math.min(n - 1, i + step));
      buttons.forEach((b, j) => b.setAttribute("tabindex", j === next ? "0" : "-1"));
      buttons[next].focus();
      if (!e.shiftKey) anchor = next;
      to(next);
    } else if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      anchor = i;
      to(i);
    } else if (e.key === "Escape") {
      select(null);
    }
  });
  selection.listeners.push((r) => buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(Boolean(r && i >= r[0] && i <= r[1])))));

  // Shows the letter of each kind if the run is wide enough. The line above alternates.
  const kindRow = h("div", { class: "kindrow", "aria-hidden": "true" });
  for (let i = 0, odd = false; i < n; odd = !odd) {
    let j = i;
    while (j + 1 < n && cells[j + 1].k === cells[i].k) j += 1;
    kindRow.append(h("span", { style: { flex: `${j - i + 1} 1 0` }, "data-odd": odd }, letter(cells[i].k)));
    i = j + 1;
  }
  const axis = h("div", { class: "axis", "aria-hidden": "true" });
  const numbers = cells.map((c) => c.l).filter((l) => l !== null);
  const every = [1, 2, 5, 10, 20, 50].find((s) => numbers.length / s <= 16) ?? 100;
  cells.forEach(({ l }, i) => {
    if (l !== null && l % every === 0) axis.append(h("span", { style: { left: `${((i + 0.5) / n) * 100}%` } }, String(l)));
  });
  const kindsUsed = [...new Set(cells.map((c) => c.k))];
  const named = (k) => {
    const ls = cells.filter((c) => c.k === k).map((c) => c.l);
    const words = ls[0] === null ? "outside layers" : `${plural(ls.length, "layer")}: ${span(ls)}`;
    return h("span", {}, h("b", {}, letter(k)), words.length > 44 ? `${words.slice(0, 42)}…` : words);
  };
  const clear = h("button", { type: "button", class: "chip", click: () => select(null), hidden: true }, "");
  selection.listeners.push((r) => {
    clear.hidden = !r;
    if (r) clear.textContent = `${rangeName(r)} ✕`;
  });
  return h("section", { id: "layers" },
    h("header", {}, h("h2", {}, "Layers by devices"), h("p", {}, `The height shows a device's bytes of a layer; the maximum is ${bytes(most)}. Click or drag over layers to filter the sections below.`), clear),
    h("div", { class: "card map" },
      h("div", { class: "plot" },
        h("div", { class: "names", style: { "grid-auto-rows": `${height}px` } }, rows > 16 ? LANES.map((d) => h("span", { class: "dev", style: { "font-size": "9px" } }, mark(d))) : LANES.map(swatch)),
        h("div", { class: "field" }, drawing, columns), kindRow, axis),
      h("div", { class: "under" },
        h("div", { class: "legend" }, [["solid", "weights, its own part"], ["copy", "weights that all devices hold"], ["cache", "caches and states"]].map(([f, w]) => h("span", {}, key(texture(f, HOST)), w))),
        h("div", { class: "legend" }, kindsUsed.slice(0, 6).map(named), kindsUsed.length > 6 && h("span", {}, `and ${kindsUsed.length - 6} more kinds`)))));
}

function rangeName([a, b]) {
  const [x, y] = [LAYERS[a].l, LAYERS[b].l];
  if (a === b) return layerName(x);
  return x === null ? `outside layers, layers ${LAYERS[a + 1].l}–${y}` : `layers ${x}–${y}`;
}
