// The plan's data, expanded from the parts that equal layers share.

const DATA = JSON.parse(document.getElementById("plan").textContent);
const PLAN = DATA.report;
const HOST = -1;

const PLACES = (DATA.places ?? []).map((p) => ({ ...p, lanes: p.devices.length ? p.devices : [HOST] }));
const DEVICES = PLAN ? PLAN.devices : [];
const deviceName = (d) => shown(d === HOST ? "host" : DEVICES[d].name);
const colour = (d) => `var(--d${d === HOST ? "h" : d % 8})`;
const hue = (d) => (d === HOST ? "h" : d % 8);
const mark = (d) => (d === HOST ? "H" : String(d));

const nameIn = (name, layer) => shown(typeof name === "string" ? name : `${name[0]}${layer ?? "*"}${name[1]}`);
const perDevice = (numbers, i) => (Array.isArray(numbers) ? numbers[i] : numbers);
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

// Returns at most `most` ranges of a device, `[start, length]` each.
function rangesOf(runs, most = 4096) {
  const out = [];
  for (const [start, length, stride, n] of runs) {
    for (let i = 0; i < (n ?? 1) && out.length < most; i += 1) out.push([start + i * (stride ?? 0), length]);
  }
  return out;
}
const lengthOf = (runs) => sum(runs.map(([, length, , n]) => length * (n ?? 1)));
const piecesOf = (runs) => sum(runs.map(([, , , n]) => n ?? 1));

// Indices that several devices hold, `[start, end, devices]`.
function overlaps(ranges) {
  const edges = [];
  ranges.forEach((runs, i) => {
    for (const [start, length] of rangesOf(runs)) edges.push([start, 1, i], [start + length, -1, i]);
  });
  edges.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const held = new Set();
  const out = [];
  let from = 0;
  for (const [at, change, i] of edges) {
    if (held.size > 1 && at > from) {
      const last = out.at(-1);
      const who = [...held];
      if (last && last[1] === from && last[2].length === who.length && who.every((d) => last[2].includes(d))) last[1] = at;
      else out.push([from, at, who]);
    }
    if (change > 0) held.add(i);
    else held.delete(i);
    from = at;
  }
  return out;
}

const rank = (ne) => {
  let n = ne.length;
  while (n > 1 && ne[n - 1] === 1) n -= 1;
  return n;
};

// The name of a tensor's split, and the contents of its lanes.
function describe(t) {
  const place = PLACES[t.p];
  const ranges = t.r === undefined ? null : DATA.ranges[t.r];
  const size = t.a === undefined ? null : t.d[t.a];
  const facts = { place, ranges, size, axis: t.a, kinds: [], twice: [] };
  if (ranges) {
    facts.label = `axis ${t.a}`;
    facts.kinds.push(`axis ${t.a}`);
    facts.pieces = Math.max(...ranges.map(piecesOf));
    if (facts.pieces > 1) facts.kinds.push("segments");
    facts.twice = overlaps(ranges);
    const block = DATA.blocks[t.t];
    facts.cause = t.a === 0 && block ? `edge blocks of ${block}` : "heads that devices share";
    if (facts.twice.length) facts.kinds.push("partly held twice");
    facts.lens = ranges.map(lengthOf);
  } else if (place.devices.length > 1) {
    facts.label = "mirrored";
    facts.kinds.push("mirrored");
  } else if (place.devices.length === 1) {
    facts.label = `whole on ${deviceName(place.devices[0])}`;
    facts.kinds.push("whole on one device");
  } else {
    facts.label = "host";
    facts.kinds.push("on the host");
  }
  facts.bytes = place.lanes.map((_, i) => t.b[Math.min(i, t.b.length - 1)]);
  return facts;
}

// Tensors grouped over equal layers, in order of first appearance.
const TENSORS = [];
{
  const known = new Map();
  for (const { l, k } of DATA.layers ?? []) {
    for (const t of DATA.kinds[k]) {
      const key = JSON.stringify(t);
      let group = known.get(key);
      if (!group) {
        group = { t, layers: [], ...describe(t) };
        known.set(key, group);
        TENSORS.push(group);
      }
      group.layers.push(l);
    }
  }
}
const LAYERS = (DATA.layers ?? []).slice().sort((a, b) => (a.l ?? -1) - (b.l ?? -1));
// Lanes of the memory and of the timeline. The host has a lane only if it takes part.
const withHost = (takesPart) => [...DEVICES.keys(), ...(takesPart ? [HOST] : [])];
const onHost = (p) => p !== undefined && !PLACES[p].devices.length;
const LANES = withHost(TENSORS.some((g) => onHost(g.t.p)));
const TIME_LANES = withHost((DATA.flows ?? []).flat().some((s) => onHost(s.p) || onHost(s.f)));

// Formats sizes: 8 × 128, 1792 · 1792 · 1536, 352 to 384.
function lens(all) {
  if (all.every((n) => n === all[0])) return `${all.length} × ${grouped(all[0])}`;
  if (all.length > 4) return `${grouped(Math.min(...all))} to ${grouped(Math.max(...all))}`;
  return all.map(grouped).join(" · ");
}

// The selected layers: null, or positions in LAYERS.
const selection = { range: null, listeners: [] };
function select(range) {
  selection.range = range;
  selection.listeners.forEach((f) => f(range));
}
const layerName = (l) => (l === null ? "outside layers" : `layer ${l}`);
