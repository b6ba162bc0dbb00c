//! Small capture files that describe large graphs: chains of concatenations and views, values joined in every order,
//! huge pads and repetitions, many readers of one value, ops with many operands.
//!
//! tpc plans, proves and runs each capture at a small size, and checks it by ggml's rules. Each step must quickly give
//! a result or a diagnostic.

use serde_json::{Value as Json, json};
use tpc_core::pipeline::{CompiledModel, compile_capture};
use tpc_core::placement::{Placement, parse_devices};
use tpc_ggml::capture;
use tpc_ggml::meta;
use tpc_numeric::Feed;

use super::{Tally, code_of, first_seed};
use crate::random::Rng;

const MOST: u64 = 1 << 44;

#[derive(Default)]
struct Writer {
    lines: Vec<Json>,
    ne: Vec<[u64; 4]>,
}

impl Writer {
    fn add(&mut self, op: &str, ne: [u64; 4], params: &[i64], src: &[usize]) -> usize {
        let nb = [4, 4 * ne[0], 4 * ne[0] * ne[1], 4 * ne[0] * ne[1] * ne[2]];
        self.put(op, ne, nb, params, src, (-1, 0))
    }

    fn put(
        &mut self,
        op: &str,
        ne: [u64; 4],
        nb: [u64; 4],
        params: &[i64],
        src: &[usize],
        (view, offset): (i64, u64),
    ) -> usize {
        let id = self.lines.len();
        self.lines.push(json!({
            "id": id, "name": format!("t{id}"), "op": op, "type": "f32", "ne": ne, "nb": nb, "params": params,
            "src": src, "view": view, "view_offs": offset, "flags": 0,
        }));
        self.ne.push(ne);
        id
    }

    fn slice(&mut self, of: usize, axis: usize, start: u64, len: u64) -> usize {
        let mut ne = self.ne[of];
        let nb = [4, 4 * ne[0], 4 * ne[0] * ne[1], 4 * ne[0] * ne[1] * ne[2]];
        ne[axis] = len;
        let owner = self.lines[of]["view"].as_i64().unwrap_or(-1);
        assert_eq!(owner, -1);
        self.put("VIEW", ne, nb, &[], &[of], (of as i64, start * nb[axis]))
    }

    fn concat(&mut self, a: usize, b: usize, axis: usize) -> Option<usize> {
        let (mut ne, other) = (self.ne[a], self.ne[b]);
        let alike = (0..4).all(|i| i == axis || ne[i] == other[i]);
        ne[axis] += other[axis];
        let fits = ne.iter().product::<u64>() < MOST;
        (alike && fits).then(|| self.add("CONCAT", ne, &[axis as i64], &[a, b]))
    }

    fn text(&self) -> String {
        self.lines.iter().map(|l| format!("{l}\n")).collect()
    }
}

fn blowup(rng: &mut Rng) -> Writer {
    let mut w = Writer::default();
    let width = *rng.pick(&[32, 64, 96, 256]);
    let weight = w.add("NONE", [width, width, 1, 1], &[], &[]);
    let rows = rng.range(1, 12);
    let x = w.add("NONE", [width, rows, 1, 1], &[], &[]);
    let h = match rng.one_in(3) {
        true => x,
        false => w.add("MUL_MAT", [width, rows, 1, 1], &[], &[weight, x]),
    };
    let length = *rng.pick(&[4, 12, 30, 60, 150]);
    match rng.range(0, 6) {
        0 => chain_of_views(&mut w, rng, h, rows, length),
        1 => doubled(&mut w, rng, h, length.min(38)),
        2 => tree(&mut w, rng, h, length),
        3 => padded(&mut w, rng, h, length.min(12)),
        4 => fan(&mut w, rng, h, length),
        5 => many_operands(&mut w, rng, h),
        _ => any(&mut w, rng, h, length),
    }
    // Add a second product, so that both sides can be split.
    let last = w.lines.len() - 1;
    let [a, b, c, d] = w.ne[last];
    if a <= 1 << 20 && rng.one_in(2) {
        let out = w.add("NONE", [a, 64, 1, 1], &[], &[]);
        w.add("MUL_MAT", [64, b, c, d], &[], &[out, last]);
    }
    w
}

/// Joins views of one value one after another, like a loop over rows.
fn chain_of_views(w: &mut Writer, rng: &mut Rng, h: usize, rows: u64, length: u64) {
    let axis = rng.range(0, 1) as usize;
    let size = if axis == 0 { w.ne[h][0] } else { rows };
    let parts: Vec<usize> = (0..length)
        .map(|i| {
            let start = if rng.one_in(2) {
                i % size
            } else {
                rng.range(0, size - 1)
            };
            let len = rng.range(1, (size - start).min(3));
            w.slice(h, axis, start, len)
        })
        .collect();
    let mut all = parts[0];
    for &p in &parts[1..] {
        let next = if rng.one_in(8) {
            w.concat(p, all, axis)
        } else {
            w.concat(all, p, axis)
        };
        all = next.unwrap_or(all);
    }
}

/// Joins a value repeatedly with itself, along random axes.
fn doubled(w: &mut Writer, rng: &mut Rng, h: usize, length: u64) {
    let axes = rng.range(1, 4);
    let mut all = h;
    for _ in 0..length {
        let axis = rng.range(0, axes - 1) as usize;
        match w.concat(all, all, axis) {
            Some(next) => all = next,
            None => break,
        }
    }
}

fn tree(w: &mut Writer, rng: &mut Rng, h: usize, length: u64) {
    let mut made = vec![h];
    for _ in 0..length {
        let (a, b) = (*rng.pick(&made), *rng.pick(&made));
        let next = if rng.one_in(3) && w.ne[a] == w.ne[b] {
            Some(w.add("ADD", w.ne[a], &[], &[a, b]))
        } else {
            w.concat(a, b, rng.range(0, 3) as usize)
        };
        made.extend(next);
    }
}

fn padded(w: &mut Writer, rng: &mut Rng, h: usize, length: u64) {
    let mut at = h;
    for _ in 0..length {
        let mut ne = w.ne[at];
        let axis = rng.range(0, 3) as usize;
        if rng.one_in(2) {
            let n = *rng.pick(&[1, 7, 1000, 50_000_000, 1 << 40]);
            ne[axis] += n;
            if ne.iter().map(|&n| u128::from(n)).product::<u128>() < u128::from(MOST) {
                let mut params = [0_i64; 8];
                params[2 * axis + 1] = (n & 0x7fff_ffff) as i64;
                at = w.add("PAD", ne, &params, &[at]);
            }
        } else {
            ne[axis] *= *rng.pick(&[2, 3, 100, 100_000]);
            if ne.iter().map(|&n| u128::from(n)).product::<u128>() < u128::from(MOST) {
                at = w.add("REPEAT", ne, &[], &[at]);
            }
        }
    }
    let [_, b, c, d] = w.ne[at];
    w.add("SUM_ROWS", [1, b, c, d], &[], &[at]);
}

/// Adds many readers of one value, and sums their results.
fn fan(w: &mut Writer, rng: &mut Rng, h: usize, length: u64) {
    let op = *rng.pick(&["SILU", "SOFT_MAX", "RMS_NORM", "FOO"]);
    let ne = w.ne[h];
    let mut all = h;
    for _ in 0..length {
        let from = if rng.one_in(4) { all } else { h };
        let one = match op {
            "SILU" => w.add("UNARY", ne, &[10], &[from]),
            "SOFT_MAX" => w.add(op, ne, &[1_065_353_216, 0], &[from]),
            "RMS_NORM" => w.add(op, ne, &[925_353_388], &[from]),
            other => w.add(other, ne, &[], &[from]),
        };
        all = w.add("ADD", ne, &[], &[all, one]);
    }
}

fn many_operands(w: &mut Writer, rng: &mut Rng, h: usize) {
    let n = *rng.pick(&[9, 33, 1000, 200_000]);
    w.add("FOO", w.ne[h], &[], &vec![h; n]);
}

/// Appends random ops on random values. The reader must refuse unsuitable operands.
fn any(w: &mut Writer, rng: &mut Rng, h: usize, length: u64) {
    let mut made = vec![h];
    for _ in 0..length {
        let a = *rng.pick(&made);
        let [n, m, k, l] = w.ne[a];
        let next = match rng.range(0, 7) {
            0 => w.concat(a, *rng.pick(&made), rng.range(0, 3) as usize),
            1 => Some(w.add("CONT", [n * m, k, l, 1], &[], &[a])),
            2 if n % 2 == 0 => Some(w.add("CONT", [n / 2, 2 * m, k, l], &[], &[a])),
            3 => {
                let axis = rng.range(0, 1) as usize;
                let size = w.ne[a][axis];
                let start = rng.range(0, size - 1);
                let owner = w.lines[a]["view"] == json!(-1);
                owner.then(|| w.slice(a, axis, start, rng.range(1, size - start)))
            }
            4 => Some(w.add("UNARY", w.ne[a], &[10], &[a])),
            5 if n * m * k * l < MOST / 5 => Some(w.add("REPEAT", [n, m, k, 5 * l], &[], &[a])),
            _ => {
                let b = *rng.pick(&made);
                (w.ne[a] == w.ne[b]).then(|| w.add("MUL", w.ne[a], &[], &[a, b]))
            }
        };
        made.extend(next);
    }
}

fn numeric(compiled: &CompiledModel, feed: &Feed) -> &'static str {
    let shrunk = match tpc_numeric::shrink(compiled) {
        Ok(shrunk) => shrunk,
        Err(d) => return d.code.id,
    };
    match tpc_numeric::compare(&shrunk, feed) {
        Ok(_) => "ok",
        Err(d) => {
            assert_ne!(d.code, "TPC0394", "{d}");
            d.code.id
        }
    }
}

fn planned(text: &str, devices: u64) -> &'static str {
    let captured = match capture::read(text, "blowup") {
        Ok(captured) => captured,
        Err(e) => return e.code().id,
    };
    let placement = Placement::on(parse_devices(&devices.to_string()).expect("a count"));
    match compile_capture(&captured, &placement) {
        Ok(compiled) => match compiled.proof_error() {
            Some(d) => d.code.id,
            None => numeric(&compiled, &Feed::Captured(captured.batch)),
        },
        Err(diagnostics) => code_of(Err(diagnostics)),
    }
}

fn linted(text: &str, devices: u64) -> &'static str {
    match capture::records(text) {
        Ok(records) => {
            let setup = meta::Setup::new(devices as usize);
            meta::diagnose(&records, &setup);
            "ok"
        }
        Err(e) => e.code().id,
    }
}

/// Returns captures that failed before: long chains, a value doubled repeatedly, a pad of 1.6 GB, an op with a million
/// operands.
fn known() -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/attacks");
    let mut out: Vec<(String, String)> = Vec::new();
    for name in [
        "concat-chain-50",
        "concat-doubled",
        "pad",
        "verify-numeric-memory",
    ] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.jsonl")));
        out.push((name.to_owned(), text.expect("a file of the repository")));
    }
    let mut rng = Rng::new(1);
    let mut chain = Writer::default();
    let x = chain.add("NONE", [64, 8, 1, 1], &[], &[]);
    chain_of_views(&mut chain, &mut rng, x, 8, 1400);
    out.push(("chain of 1400".to_owned(), chain.text()));
    let mut wide = Writer::default();
    let x = wide.add("NONE", [64, 8, 1, 1], &[], &[]);
    wide.add("FOO", [64, 8, 1, 1], &[], &vec![x; 1_000_000]);
    out.push(("a million operands".to_owned(), wide.text()));
    out
}

pub(super) fn generated(runs: u64, tally: &mut Tally) {
    // A run from a later seed looks into that seed.
    let known = if first_seed() == 0 {
        known()
    } else {
        Vec::new()
    };
    for (name, text) in known {
        tally.run(|| name.clone(), || planned(&text, 2));
        tally.run(|| format!("lint {name}"), || linted(&text, 2));
    }
    for seed in first_seed()..first_seed() + runs {
        let mut rng = Rng::new(seed);
        let devices = rng.range(1, 8);
        let text = blowup(&mut rng).text();
        tally.run(
            || format!("seed {seed} on {devices}"),
            || planned(&text, devices),
        );
        tally.run(|| format!("lint seed {seed}"), || linted(&text, devices));
    }
}
