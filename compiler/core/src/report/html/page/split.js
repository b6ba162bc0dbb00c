// A tensor's split as lanes: one per device, the split axis from left to right, to scale.

// Textures per device colour: `copy` for parts that all devices hold, `cache`, `state`, `work`.
const defs = svg("defs");
{
  const textures = {
    copy: ["6", "6", (c) => [svg("rect", { width: 6, height: 6, fill: c, opacity: 0.3 }), svg("path", { d: "M-1 7L7 -1M-1 1L1 -1M5 7L7 5", stroke: c, "stroke-width": 1.5 })]],
    cache: ["4", "4", (c) => [svg("rect", { width: 4, height: 4, fill: c, opacity: 0.22 }), svg("path", { d: "M0 1H4", stroke: c, "stroke-width": 1.6 })]],
    state: ["5", "5", (c) => [svg("rect", { width: 5, height: 5, fill: c, opacity: 0.22 }), svg("circle", { cx: 2.5, cy: 2.5, r: 1.3, fill: c })]],
    work: ["4", "4", (c) => [svg("rect", { width: 4, height: 4, fill: c, opacity: 0.3 })]],
  };
  for (const i of [0, 1, 2, 3, 4, 5, 6, 7, "h"]) {
    for (const [name, [width, height, draw]] of Object.entries(textures)) {
      defs.append(svg("pattern", { id: `${name}-${i}`, width, height, patternUnits: "userSpaceOnUse" }, draw(`var(--d${i})`)));
    }
  }
  defs.append(svg("pattern", { id: "wait", width: 6, height: 6, patternUnits: "userSpaceOnUse" }, svg("path", { d: "M-1 7L7 -1M-1 1L1 -1M5 7L7 5", stroke: "var(--line-2)", "stroke-width": 1 })));
  defs.append(svg("pattern", { id: "over", width: 5, height: 5, patternUnits: "userSpaceOnUse" }, svg("rect", { width: 5, height: 5, fill: "var(--bad)", opacity: 0.25 }), svg("path", { d: "M0 0L5 5M-1 4L1 6M4 -1L6 1", stroke: "var(--bad)", "stroke-width": 1.4 })));
}
const texture = (name, d) => (name === "solid" ? colour(d) : `url(#${name}-${hue(d)})`);
const key = (fillWith) => svg("svg", { viewBox: "0 0 26 13", "aria-hidden": "true" }, svg("rect", { width: 26, height: 13, rx: 2, fill: fillWith }));

function swatch(d) {
  return h("span", { class: "dev" }, h("span", { class: "swatch", style: { "--c": colour(d), "--on": `var(--t${hue(d)})` }, "aria-hidden": "true" }, mark(d)), h("span", { class: "label" }, deviceName(d)));
}

// `what` has place, ranges and size from `describe`, and may be a partial sum.
function lanes(what, height, lanesShown = LANES) {
  const n = lanesShown.length;
  const pitch = height / n;
  const thick = pitch > 3 ? pitch - 1 : pitch * 0.86;
  const out = svg("svg", { class: "lanes", height, "aria-hidden": "true" });
  // Positions are percentages of the width, so that textures keep their shape.
  const share = (x) => `${((x / (what.size || 1)) * 100).toFixed(3)}%`;
  const whole = what.size || 1;
  const rect = (x, y, width, more) => out.append(svg("rect", { x: share(x), y, width: share(Math.max(width, whole * 0.002)), height: thick, ...more }));
  lanesShown.forEach((d, lane) => {
    const y = lane * pitch;
    const i = what.place.lanes.indexOf(d);
    if (i < 0) return;
    rect(0, y, whole, { fill: "var(--track)" });
    if (what.partial) {
      rect(0, y, whole, { fill: colour(d), opacity: 0.16 });
      out.append(svg("line", { x1: 0, x2: "100%", y1: y + thick / 2, y2: y + thick / 2, stroke: colour(d), "stroke-width": Math.min(1.6, thick), "stroke-dasharray": "2 4" }));
    } else if (!what.ranges) {
      rect(0, y, whole, { fill: what.place.lanes.length > 1 ? texture("copy", d) : colour(d) });
    } else {
      for (const [start, length, stride, times] of what.ranges[i] ?? []) {
        if (times && stride * 300 < whole) {
          // Too fine to draw one by one: draw the density.
          rect(start, y, stride * (times - 1) + length, { fill: colour(d), opacity: Math.max(0.25, length / stride) });
          continue;
        }
        for (let k = 0; k < (times ?? 1); k += 1) rect(start + k * (stride ?? 0), y, length, { fill: colour(d) });
      }
    }
  });
  // Highlights parts that several devices hold, across all lanes.
  for (const [from, to] of (what.twice ?? []).slice(0, 200)) {
    const width = Math.max(to - from, whole * 0.012);
    const x = Math.min(Math.max(0, (from + to - width) / 2), whole - width);
    out.append(svg("rect", { x: share(x), y: 0.75, width: share(width), height: height - 1.5, fill: "none", stroke: "var(--ink)", "stroke-width": 1.4 }));
  }
  return out;
}
