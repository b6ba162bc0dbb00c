// One batch in time: a strip of the whole batch, a window of it by devices, and the steps in the window.

const slowest = (s, b) => (Array.isArray(s.us[b]) ? Math.max(...s.us[b]) : s.us[b]);
const isCopy = (s) => s.f !== undefined;
const bytesEach = (s, b) => perDevice(s.b[b], 0);

// Counts bytes as the plan does: one participant's operand for a collective, every link for a copy.
function bytesOf(s, b) {
  if (!s.b) return 0;
  return Array.isArray(s.b[b]) ? sum(s.b[b]) : s.b[b] * (s.c ?? 1);
}

const OP_WORDS = { all_reduce: "all-reduce", all_gather: "all-gather", reduce_scatter: "reduce-scatter", all_to_all: "all-to-all" };
const opWord = (s) => OP_WORDS[s.op] ?? s.op;

// The start and end of every step on every lane. Devices wait for each other at transfers.
function schedule(b) {
  const clocks = TIME_LANES.map(() => 0);
  const now = () => Math.max(...clocks);
  let place = -1;
  const stretches = DATA.stretches.map(({ l, f }) => {
    const out = { l, f, from: now(), work: 0, collective: 0, copy: 0, events: [] };
    for (const s of DATA.flows[f]) {
      const on = PLACES[s.p].lanes.map((d) => TIME_LANES.indexOf(d));
      if (s.b) {
        const from = now();
        const to = from + slowest(s, b);
        const source = isCopy(s) ? PLACES[s.f].lanes.map((d) => TIME_LANES.indexOf(d)) : [];
        clocks.fill(to);
        out.events.push({ s, on: [...new Set([...source, ...on])], from, to });
        out[isCopy(s) ? "copy" : "collective"] += to - from;
        place = -1;
        continue;
      }
      if (place !== s.p) clocks.fill(now());
      place = s.p;
      const before = now();
      const spans = on.map((lane, i) => {
        const from = clocks[lane];
        clocks[lane] = from + perDevice(s.us[b], i);
        return [from, clocks[lane]];
      });
      out.work += now() - before;
      out.events.push({ s, on, spans, from: Math.min(...spans.map((x) => x[0])), to: Math.max(...spans.map((x) => x[1])) });
    }
    out.to = now();
    return out;
  });
  return { stretches, total: now() };
}

function timeline() {
  if (!DATA.stretches.length) return null;
  const schedules = [schedule(0), schedule(1)];
  let b = 0;
  // The stretches in the window, first and last, and their times.
  let seen = [0, 0];
  let view = [0, 1];
  let marked = null;
  const usual = (() => {
    const counts = new Map();
    DATA.stretches.forEach(({ l, f }) => { if (l !== null) counts.set(f, (counts.get(f) ?? 0) + 1); });
    const f = [...counts].sort((x, y) => y[1] - x[1])[0]?.[0];
    return Math.max(0, DATA.stretches.findIndex((s) => s.f === f && s.l !== null));
  })();

  const strip = h("div", { class: "strip" });
  const detail = h("div", { class: "lanes-in-time", tabindex: 0, role: "group", "aria-label": "Timeline; left and right move by a layer, plus and minus zoom, 0 shows the whole batch" });
  const parts = h("div", { class: "parts legend" });
  const where = h("span", { class: "where", role: "status" });
  const steps = h("div", { class: "steps" });
  const label = (st) => (st.l === null ? (st.from === 0 ? "before the layers" : "outside layers") : layerName(st.l));

  const inView = () => Array.from({ length: seen[1] - seen[0] + 1 }, (_, i) => seen[0] + i);
  function show(first, last = first) {
    const { stretches } = schedules[b];
    seen = [first, last];
    view = [stretches[first].from, Math.max(stretches[last].to, stretches[first].from + 1e-6)];
    draw();
  }
  function move(by) {
    const n = schedules[b].stretches.length;
    const width = seen[1] - seen[0] + 1;
    const first = Math.max(0, Math.min(n - width, seen[0] + by * (width > 3 ? Math.ceil(width / 2) : 1)));
    show(first, first + width - 1);
  }
  function zoom(factor) {
    const n = schedules[b].stretches.length;
    const width = Math.max(1, Math.min(n, Math.round((seen[1] - seen[0] + 1) * factor)));
    const first = Math.max(0, Math.min(n - width, Math.round((seen[0] + seen[1] - width + 1) / 2)));
    show(first, first + width - 1);
  }
  const whole = () => show(0, schedules[b].stretches.length - 1);

  const widthOf = (element) => Math.max(280, Math.floor(element.clientWidth));

  function drawStrip() {
    const { stretches, total } = schedules[b];
    const width = widthOf(strip);
    const height = 46;
    const out = svg("svg", { viewBox: `0 0 ${width} ${height + 16}`, height: height + 16, role: "img", "aria-label": `The whole batch, ${time(total)}` });
    const x = (t) => (t / total) * width;
    stretches.forEach((st, i) => {
      const w = x(st.to) - x(st.from);
      if (w <= 0) return;
      const gap = w > 3 ? 0.6 : 0;
      let y = height;
      for (const [k, f] of [["work", "var(--dh)"], ["collective", "var(--transfer)"], ["copy", "url(#wait)"]]) {
        const tall = (st[k] / (st.to - st.from)) * height;
        if (tall <= 0) continue;
        y -= tall;
        out.append(svg("rect", { x: x(st.from) + gap / 2, y, width: Math.max(0.4, w - gap), height: tall, fill: f, opacity: k === "work" ? 0.55 : 1, stroke: k === "copy" ? "var(--ink-3)" : "none", "stroke-width": 0.6 }));
      }
      const hit = svg("rect", { x: x(st.from), y: 0, width: w, height, fill: "transparent" });
      hit.addEventListener("click", () => show(i));
      out.append(tip(hit, () => [label(st), `${time(st.to - st.from)}: work ${time(st.work)}${st.collective ? `, collectives ${time(st.collective)}` : ""}${st.copy ? `, copies ${time(st.copy)}` : ""}`]));
    });
    out.append(svg("rect", { class: "brush", x: x(view[0]), y: 0.5, width: Math.max(3, x(view[1]) - x(view[0])), height: height - 1, "pointer-events": "none" }));
    out.append(svg("text", { x: 0, y: height + 13 }, "0"), svg("text", { x: width, y: height + 13, "text-anchor": "end" }, time(total)));
    strip.replaceChildren(out);
  }

  function drawDetail() {
    const { stretches } = schedules[b];
    const [t0, t1] = view;
    const left = innerWidth < 720 ? 26 : 74;
    const width = widthOf(detail);
    const pitch = Math.max(8, Math.min(30, 300 / TIME_LANES.length));
    const top = 20;
    const height = top + TIME_LANES.length * pitch;
    const x = (t) => left + ((t - t0) / (t1 - t0)) * (width - left);
    const out = svg("svg", { viewBox: `0 0 ${width} ${height + 20}`, height: height + 20, role: "img", "aria-label": "Steps by device; the table below lists them" });
    TIME_LANES.forEach((d, i) => {
      out.append(svg("rect", { x: left, y: top + i * pitch, width: width - left, height: pitch - 2, fill: "var(--track)", opacity: 0.6 }));
      if (pitch >= 11 || i % 4 === 0) out.append(svg("text", { x: left - 8, y: top + i * pitch + pitch / 2 + 3, "text-anchor": "end" }, left > 30 ? deviceName(d) : mark(d)));
    });
    const inside = inView();
    const coarse = sum(inside.map((i) => stretches[i].events.length)) > 260;
    const clip = (from, to) => [Math.max(left, x(from)), Math.min(width, x(to))];
    const add = (from, to, lane, rows, attributes, lines) => {
      const [a, z] = clip(from, to);
      if (z <= a) return null;
      const gap = z - a > 3 ? 1 : 0;
      const r = svg("rect", { x: a, y: top + lane * pitch, width: Math.max(0.5, z - a - gap), height: rows * pitch - 2, ...attributes });
      out.append(lines ? tip(r, lines) : r);
      return [a, z - gap];
    };
    const text = (a, z, lane, words, cls, fillWith) => {
      const room = Math.floor((z - a - 6) / 6.2);
      if (room < Math.min(5, words.length) || pitch < 13) return;
      const t = words.length > room ? `${words.slice(0, room - 1)}…` : words;
      out.append(svg("text", { x: a + 4, y: top + lane * pitch + pitch / 2 + 3, class: cls, "pointer-events": "none", style: fillWith && { fill: fillWith } }, t));
    };
    for (const i of inside) {
      const st = stretches[i];
      const [a, z] = clip(st.from, st.to);
      if (z - a > 46) out.append(svg("text", { x: (a + z) / 2, y: 12, "text-anchor": "middle" }, label(st)));
      if (z - a > 14) out.append(svg("line", { x1: a, x2: a, y1: 4, y2: height, stroke: "var(--line-2)" }));
      if (coarse) {
        // Too many steps to draw: per layer, the work of a device, then the transfers.
        TIME_LANES.forEach((d, lane) => {
          const own = sum(st.events.filter((e) => e.spans && e.on.includes(lane)).map((e) => { const k = e.on.indexOf(lane); return e.spans[k][1] - e.spans[k][0]; }));
          add(st.from, st.from + own, lane, 1, { fill: colour(d) }, () => [`${label(st)}, ${deviceName(d)}`, `works ${time(own)} of ${time(st.to - st.from)}`]);
        });
        if (st.collective + st.copy > 0) add(st.to - st.collective - st.copy, st.to, 0, DEVICES.length, { fill: "var(--transfer)", opacity: 0.9 }, () => [label(st), st.collective ? `collectives ${time(st.collective)}` : null, st.copy ? `copies ${time(st.copy)}` : null]);
        continue;
      }
      for (const e of st.events) {
        const on = marked === e.s ? { stroke: "var(--accent)", "stroke-width": 2.5 } : {};
        const what = nameIn(e.s.w ?? e.s.n, st.l);
        if (e.spans) {
          const until = Math.max(...e.spans.map((p) => p[1]));
          e.on.forEach((lane, k) => {
            const [from, to] = e.spans[k];
            const d = TIME_LANES[lane];
            const drawn = add(from, to, lane, 1, { fill: colour(d), ...on }, () => [`${opWord(e.s)} ${what}`, `${deviceName(d)}: ${time(to - from)}`, `→ ${nameIn(e.s.n, st.l)} ${e.s.d}${e.s.x ? ", a partial sum" : ""}`]);
            if (drawn) text(...drawn, lane, e.s.w ? short(what) : opWord(e.s), "in", `var(--t${hue(d)})`);
            if (to < until) add(to, until, lane, 1, { fill: "url(#wait)" }, () => [`${deviceName(d)} waits for other devices`, time(until - to)]);
          });
          continue;
        }
        const first = Math.min(...e.on);
        const rows = Math.max(...e.on) - first + 1;
        const lines = () => [
          isCopy(e.s) ? `copy ${nameIn(e.s.n, st.l)}, ${shown(PLACES[e.s.f].name)} → ${shown(PLACES[e.s.p].name)}` : `${opWord(e.s)} of ${nameIn(e.s.n, st.l)}`,
          `${time(e.to - e.from)}, ${bytes(bytesEach(e.s, b))}${isCopy(e.s) ? ` per link, ${bytes(bytesOf(e.s, b))} in all` : " per device"}`,
        ];
        const look = isCopy(e.s) ? { fill: "var(--surface)", stroke: "var(--ink-2)", "stroke-width": 1.3, "stroke-dasharray": "5 3" } : { fill: "var(--transfer)" };
        const drawn = add(e.from, e.to, first, rows, { ...look, ...on }, lines);
        if (drawn) text(...drawn, first, isCopy(e.s) ? `${mark(PLACES[e.s.f].lanes[0])} → ${PLACES[e.s.p].lanes.length > 1 ? "all" : mark(PLACES[e.s.p].lanes[0])}` : opWord(e.s), isCopy(e.s) ? "" : "on");
      }
    }
    // The times count from the start of the window.
    const step = niceStep((t1 - t0) / Math.max(2, (width - left) / 110));
    for (let i = 0; i * step <= t1 - t0; i += 1) {
      const at = x(t0 + i * step);
      out.append(svg("line", { x1: at, x2: at, y1: height, y2: height + 4, stroke: "var(--ink-3)" }), svg("text", { x: Math.min(width - 2, at), y: height + 16, "text-anchor": at > width - 30 ? "end" : i ? "middle" : "start" }, time(Number((i * step).toPrecision(6)))));
    }
    detail.replaceChildren(out);
  }
  const short = (name) => name.replace(/^blk\.\d+\./, "").replace(/\.weight$/, "");
  function niceStep(rough) {
    const base = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((m) => m * base).find((m) => m >= rough) ?? rough;
  }

  function drawParts() {
    const { stretches, total } = schedules[b];
    const [work, collective, copy] = ["work", "collective", "copy"].map((k) => sum(stretches.map((s) => s[k])));
    const given = b ? PLAN.estimate.prefill_us : PLAN.estimate.decode_us;
    const entries = [[work, "work of the slowest device", "var(--dh)"], [collective, "collectives", "var(--transfer)"], [copy, "copies", "url(#wait)"]];
    const differs = Math.abs(total - given) > 0.01 * given;
    parts.replaceChildren(...entries.filter(([us]) => us > 0).map(([us, w, f]) => h("span", {}, key(f), h("b", {}, time(us)), `${w} (${percent(us / total)})`)),
      ...(differs ? [h("span", {}, `Drawn: ${time(total)}; estimate: ${time(given)}. Here devices wait at every transfer; the estimate takes the busiest one over the whole batch.`)] : []));
  }

  function drawSteps() {
    const { stretches } = schedules[b];
    const chosen = inView().map((i) => stretches[i]);
    where.textContent = chosen.length === 1 ? `${label(chosen[0])}, ${time(chosen[0].to - chosen[0].from)} from ${time(view[0])} on` : chosen.length === stretches.length ? `whole batch, ${time(view[1])}` : `${label(chosen[0])} to ${label(chosen.at(-1))}, ${time(view[1] - view[0])}`;
    steps.replaceChildren(chosen.length <= 3 ? stepTable(chosen) : flowTable(chosen));
  }
  function stepTable(chosen) {
    const rows = chosen.flatMap((st) => st.events.map((e) => {
      const s = e.s;
      const place = PLACES[s.p];
      const ranges = s.r === undefined ? null : DATA.ranges[s.r];
      const size = ranges && Math.max(...ranges.flatMap((r) => r.map(([start, length, stride, n]) => start + length + (stride ?? 0) * ((n ?? 1) - 1))));
      const state = s.x ? "partial Σ" : ranges ? `axis ${s.a}` : place.devices.length > 1 ? "mirrored" : deviceName(place.lanes[0]);
      const row = h("tr", { class: s.b ? "transfer" : "", tabindex: 0 },
        h("td", {}, h("code", {}, opWord(s))), h("td", {}, h("code", {}, s.w ? short(nameIn(s.w, st.l)) : "")),
        h("td", {}, h("code", {}, nameIn(s.n, st.l)), h("span", { class: "dim" }, ` ${s.d}`)),
        h("td", {}, isCopy(s) ? `${shown(PLACES[s.f].name)} → ${shown(place.name)}` : shown(place.name)),
        h("td", {}, h("span", { class: `tag ${s.x ? "partial" : ""}` }, state)),
        h("td", { class: "lanes" }, lanes({ place, ranges, size, partial: s.x }, Math.max(10, Math.min(24, LANES.length * 3)))),
        h("td", { class: "num" }, time(slowest(s, b))), h("td", { class: "num" }, s.b ? bytes(bytesOf(s, b)) : ""));
      const light = (on) => { marked = on ? s : null; row.classList.toggle("on", on); drawDetail(); };
      row.addEventListener("pointerenter", () => light(true));
      row.addEventListener("pointerleave", () => light(false));
      row.addEventListener("focus", () => light(true));
      row.addEventListener("blur", () => light(false));
      return row;
    }));
    return h("table", {}, h("thead", {}, h("tr", {}, ["op", "reads", "makes", "on", "state", "per device", "slowest device", "bytes"].map((w, i) => h("th", { scope: "col", class: i > 5 && "num" }, w)))), h("tbody", {}, rows));
  }
  function flowTable(chosen) {
    const flows = new Map();
    chosen.forEach((st) => flows.set(st.f, [...(flows.get(st.f) ?? []), st]));
    const total = (f, pick) => DATA.flows[f].filter((s) => s.b && isCopy(s) === pick);
    const cell = (list) => (list.length ? `${list.length} × ${time(sum(list.map((s) => slowest(s, b))) / list.length)}, ${bytes(sum(list.map((s) => bytesOf(s, b))))}` : "");
    return h("table", {}, h("thead", {}, h("tr", {}, ["layers", "times", "each takes", "work", "collectives of each", "copies of each"].map((w, i) => h("th", { scope: "col", class: i && "num" }, w)))),
      h("tbody", {}, [...flows].map(([f, all]) => {
        const named = all[0].l === null ? label(all[0]) : span(all.map((s) => s.l));
        return h("tr", {}, h("td", {}, named), h("td", { class: "num" }, String(all.length)), h("td", { class: "num" }, time(all[0].to - all[0].from)), h("td", { class: "num" }, time(all[0].work)),
          h("td", { class: "num" }, cell(total(f, false))), h("td", { class: "num" }, cell(total(f, true))));
      })));
  }

  function draw() {
    drawParts();
    drawStrip();
    drawDetail();
    drawSteps();
  }
  const batches = ["One token", `A prompt batch of ${grouped(DATA.batches[1].tokens)}`].map((w, i) => h("button", { type: "button", "aria-pressed": String(i === 0), click: () => {
    b = i;
    batches.forEach((x, j) => x.setAttribute("aria-pressed", String(i === j)));
    show(...seen);
  } }, w));
  const buttons = [["◀", "Layer before", () => move(-1)], ["▶", "Layer after", () => move(1)], ["−", "Zoom out", () => zoom(3)], ["+", "Zoom in", () => zoom(1 / 3)]].map(([w, words, f]) => h("button", { type: "button", "aria-label": words, title: words, click: f }, w));
  detail.addEventListener("keydown", (e) => {
    const act = { ArrowLeft: () => move(-1), ArrowRight: () => move(1), "+": () => zoom(1 / 3), "=": () => zoom(1 / 3), "-": () => zoom(3), 0: whole }[e.key];
    if (act) { e.preventDefault(); act(); }
  });
  selection.listeners.push((r) => {
    if (!r) return;
    const wanted = new Set(LAYERS.slice(r[0], r[1] + 1).map((x) => x.l));
    const hit = DATA.stretches.map((s, i) => (wanted.has(s.l) ? i : -1)).filter((i) => i >= 0);
    // Steps outside layers are before the first or after the last layer: use their start.
    if (hit.length) show(hit[0], r[0] === r[1] && wanted.has(null) ? hit[0] : hit.at(-1));
  });
  new ResizeObserver(() => { drawStrip(); drawDetail(); }).observe(strip);
  const section = h("section", { id: "timeline" },
    h("header", {}, h("h2", {}, "Time"), h("p", {}, "Ops, collectives and copies in the order of the programs, with durations from the cost model."), h("span", { class: "switch", role: "group", "aria-label": "Batch" }, batches)),
    h("div", { class: "card time" }, parts, strip,
      h("div", { class: "bar-row" }, buttons, h("button", { type: "button", click: whole }, "Whole batch"), where,
        h("span", { class: "legend" }, h("span", {}, key("var(--transfer)"), "collective"), h("span", {}, svg("svg", { viewBox: "0 0 26 13", "aria-hidden": "true" }, svg("rect", { x: 1, y: 1, width: 24, height: 11, fill: "none", stroke: "var(--ink-2)", "stroke-width": 1.3, "stroke-dasharray": "5 3" })), "copy"), h("span", {}, key("url(#wait)"), "waiting"))),
      detail, steps));
  return { section, start: () => show(usual) };
}
