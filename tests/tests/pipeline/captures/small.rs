//! Small captures with forms that are easily misread: planned, split and compared with the whole graph.

use tpc_ir::op::Op;
use tpc_ir::{DType, Graph};
use tpc_passes::machine::{Link, Topology};

use super::writer::{Tensor, Writer};
use super::{Divided, Whole, divide_on, read};

const F32: DType = DType::F32;

const EMBD: u64 = 32;
const TOKENS: u64 = 8;
const CELLS: u64 = 24;
const HEADS: u64 = 4;
const HEAD: u64 = 16;

/// Returns links without cost, so that the planner splits every class.
fn free_links() -> Topology {
    Topology {
        link: Link::new(1e18, 0.0),
        ..Topology::default()
    }
}

/// Reads, plans and runs a capture on 2 to 5 devices. Returns the plan for two.
fn check(w: &Writer) -> Divided {
    let captured = read(&w.text, "small").unwrap_or_else(|e| panic!("{e}\n{}", w.text));
    let text = captured.graph.to_string();
    let whole = Whole::new(captured).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut first = None;
    for devices in 2..=5 {
        let d = divide_on(&whole.graph, devices, free_links())
            .unwrap_or_else(|e| panic!("{e}\n{text}"));
        let compared = whole.compare(&d.programs);
        compared.unwrap_or_else(|e| panic!("{devices} devices: {e}\n{}", d.sharded));
        first.get_or_insert(d);
    }
    first.expect("several numbers of devices")
}

fn is_split(sharded: &Graph, name: &str) -> bool {
    let of = |op: &Op| match op {
        Op::Weight(w) => w.tensor == name,
        Op::State(s) => s.name == name,
        _ => false,
    };
    let mut values = sharded.values();
    let found = values.find(|(v, _)| of(sharded.def_op(*v)));
    let (_, data) = found.unwrap_or_else(|| panic!("no {name} in\n{sharded}"));
    data.sharding.is_split()
}

fn assert_split(d: &Divided, names: &[&str]) {
    for name in names {
        assert!(
            is_split(&d.sharded, name),
            "{name} is whole in\n{}",
            d.sharded
        );
    }
}

fn embeddings(w: &mut Writer) -> Tensor {
    let table = w.leaf(F32, [EMBD, 40, 1, 1]);
    w.flags = 1;
    let tokens = w.leaf(DType::I32, [TOKENS, 1, 1, 1]);
    let x = w.op("GET_ROWS", [EMBD, TOKENS, 1, 1], &[table, tokens]);
    // SOFT_MAX needs whole rows, so the planner does not split the model's width.
    w.params = vec![1.0_f32.to_bits()];
    w.op("SOFT_MAX", [EMBD, TOKENS, 1, 1], &[x])
}

fn project(w: &mut Writer, name: &str, x: Tensor, out: u64) -> Tensor {
    w.name = Some(name.to_owned());
    let weight = w.leaf(F32, [x.ne[0], out, 1, 1]);
    w.op("MUL_MAT", [out, x.ne[1], 1, 1], &[weight, x])
}

fn cache(w: &mut Writer, name: &str, ne: [u64; 4]) -> Tensor {
    w.name = Some(name.to_owned());
    w.leaf(F32, ne)
}

/// Makes a value the graph's result through an op that is not split.
fn finish(w: &mut Writer, x: Tensor) {
    w.params = vec![1.0_f32.to_bits()];
    w.op("SOFT_MAX", x.ne, &[x]);
}

fn store(w: &mut Writer, rows: Tensor, index: Tensor, cache: Tensor) {
    w.write("SET_ROWS", &[rows, index, cache], cache);
}

fn cells(w: &mut Writer) -> (Tensor, Tensor) {
    w.flags = 1;
    let index = w.leaf(DType::I64, [TOKENS, 1, 1, 1]);
    w.flags = 1;
    let mask = w.leaf(F32, [CELLS, TOKENS, 1, 1]);
    (index, mask)
}

/// Views a cache's rows by heads: [elements, cells, heads].
fn by_heads(w: &mut Writer, cache: Tensor, first: u64) -> Tensor {
    let ne = [HEAD, HEADS, CELLS, 1];
    let nb = [4, HEAD * 4, cache.nb[1], cache.nb[1] * CELLS];
    let view = w.view("VIEW", cache, ne, nb, 4 * first);
    w.permute(view, [0, 2, 1, 3])
}

fn attend(w: &mut Writer, name: &str, q: Tensor, kv: &[Tensor], max_bias: f32) -> Tensor {
    let q = w.reshape(q, [HEAD, HEADS, TOKENS, 1]);
    let q = w.permute(q, [0, 2, 1, 3]);
    let mut src = vec![q];
    src.extend(kv);
    w.params = vec![0.3_f32.to_bits(), max_bias.to_bits()];
    let y = w.op("FLASH_ATTN_EXT", [HEAD, HEADS, TOKENS, 1], &src);
    let y = w.reshape(y, [HEAD * HEADS, TOKENS, 1, 1]);
    project(w, name, y, EMBD)
}

#[test]
fn a_cache_may_be_read_by_layers_that_do_not_write_it() {
    let mut w = Writer::default();
    let x = embeddings(&mut w);
    let (index, mask) = cells(&mut w);
    let k = project(&mut w, "k", x, HEAD * HEADS);
    let v = project(&mut w, "v", x, HEAD * HEADS);
    let ck = cache(&mut w, "ck", [HEAD * HEADS, CELLS, 1, 1]);
    let cv = cache(&mut w, "cv", [HEAD * HEADS, CELLS, 1, 1]);
    store(&mut w, k, index, ck);
    store(&mut w, v, index, cv);
    let mut x = x;
    for (q, o) in [("q0", "o0"), ("q1", "o1")] {
        let queries = project(&mut w, q, x, HEAD * HEADS);
        let (k, v) = (by_heads(&mut w, ck, 0), by_heads(&mut w, cv, 0));
        let y = attend(&mut w, o, queries, &[k, v, mask], 0.0);
        x = w.op("ADD", [EMBD, TOKENS, 1, 1], &[y, x]);
    }
    finish(&mut w, x);
    let d = check(&w);
    assert_split(&d, &["q0", "q1", "k", "v", "ck", "cv", "o0", "o1"]);
}

#[test]
fn keys_and_values_may_share_a_buffer() {
    let mut w = Writer::default();
    let x = embeddings(&mut w);
    let (index, mask) = cells(&mut w);
    let row = HEAD * HEADS;
    let both = cache(&mut w, "both", [2 * row, CELLS, 1, 1]);
    for (name, at) in [("k", 0), ("v", row)] {
        let rows = project(&mut w, name, x, row);
        let half = w.slice(both, 0, at, row);
        store(&mut w, rows, index, half);
    }
    let q = project(&mut w, "q", x, row);
    let (k, v) = (by_heads(&mut w, both, 0), by_heads(&mut w, both, row));
    let y = attend(&mut w, "o", q, &[k, v, mask], 0.0);
    finish(&mut w, y);
    let d = check(&w);
    assert_split(&d, &["q", "k", "v", "both", "o"]);
}

#[test]
fn a_transposed_cache_is_written_element_by_element() {
    let mut w = Writer::default();
    let x = embeddings(&mut w);
    let (index, mask) = cells(&mut w);
    let row = HEAD * HEADS;
    let (k, v) = (project(&mut w, "k", x, row), project(&mut w, "v", x, row));
    let ck = cache(&mut w, "ck", [row, CELLS, 1, 1]);
    store(&mut w, k, index, ck);
    let cv = cache(&mut w, "cv", [row, CELLS, 1, 1]);
    w.flags = 1;
    let elements = w.leaf(DType::I64, [row * TOKENS, 1, 1, 1]);
    let flat = w.reshape(v, [1, row * TOKENS, 1, 1]);
    let target = w.reshape(cv, [1, row * CELLS, 1, 1]);
    store(&mut w, flat, elements, target);
    let q = project(&mut w, "q", x, row);
    let q = w.reshape(q, [HEAD, HEADS, TOKENS, 1]);
    let q = w.permute(q, [0, 2, 1, 3]);
    let keys = by_heads(&mut w, ck, 0);
    let scores = w.op("MUL_MAT", [CELLS, TOKENS, HEADS, 1], &[keys, q]);
    w.params = vec![0.3_f32.to_bits()];
    let scores = w.op("SOFT_MAX", [CELLS, TOKENS, HEADS, 1], &[scores, mask]);
    let nb = [4, 4 * CELLS, 4 * CELLS * HEAD, 4 * CELLS * row];
    let values = w.view("VIEW", cv, [CELLS, HEAD, HEADS, 1], nb, 0);
    let y = w.op("MUL_MAT", [HEAD, TOKENS, HEADS, 1], &[values, scores]);
    let y = w.permute(y, [0, 2, 1, 3]);
    let y = w.reshape(y, [row, TOKENS, 1, 1]);
    let y = project(&mut w, "o", y, EMBD);
    finish(&mut w, y);
    let d = check(&w);
    assert_split(&d, &["q", "k", "v", "ck", "cv", "o"]);
}

#[test]
fn slopes_and_sinks_belong_to_heads_of_the_whole_model() {
    let mut w = Writer::default();
    let x = embeddings(&mut w);
    let (index, mask) = cells(&mut w);
    let row = HEAD * HEADS;
    let mut kv = Vec::new();
    for (name, of) in [("k", "ck"), ("v", "cv")] {
        let rows = project(&mut w, name, x, row);
        let cache = cache(&mut w, of, [row, CELLS, 1, 1]);
        store(&mut w, rows, index, cache);
        kv.push(by_heads(&mut w, cache, 0));
    }
    kv.push(mask);
    w.name = Some("sinks".to_owned());
    kv.push(w.leaf(F32, [HEADS, 1, 1, 1]));
    let q = project(&mut w, "q", x, row);
    let y = attend(&mut w, "o", q, &kv, 8.0);
    finish(&mut w, y);
    let d = check(&w);
    assert_split(&d, &["q", "k", "v", "sinks", "o"]);
}

#[test]
fn heads_in_a_loop_are_segments() {
    let mut w = Writer::default();
    let x = embeddings(&mut w);
    let y = project(&mut w, "up", x, HEAD * HEADS);
    let mut parts = Vec::new();
    for head in 0..HEADS {
        let part = w.slice(y, 0, head * HEAD, HEAD);
        w.params = vec![1e-5_f32.to_bits()];
        let part = w.op("RMS_NORM", [HEAD, TOKENS, 1, 1], &[part]);
        parts.push(w.op("SILU", [HEAD, TOKENS, 1, 1], &[part]));
    }
    let mut all = parts[0];
    for part in &parts[1..] {
        all = w.op("CONCAT", [all.ne[0] + HEAD, TOKENS, 1, 1], &[all, *part]);
    }
    let y = project(&mut w, "down", all, EMBD);
    finish(&mut w, y);
    check(&w);
}

#[test]
fn parts_without_elements_are_no_parts() {
    let mut w = Writer::default();
    let x = embeddings(&mut w);
    let y = project(&mut w, "up", x, 64);
    let nothing = w.slice(y, 0, 0, 0);
    let first = w.op("CONCAT", [64, TOKENS, 1, 1], &[nothing, y]);
    let nothing = w.slice(first, 1, 0, 0);
    w.params = vec![1];
    let second = w.op("CONCAT", [64, TOKENS, 1, 1], &[first, nothing]);
    let y = w.op("SILU", [64, TOKENS, 1, 1], &[second]);
    let y = project(&mut w, "down", y, EMBD);
    finish(&mut w, y);
    let d = check(&w);
    assert_split(&d, &["up", "down"]);
}

#[test]
fn inputs_may_have_heads() {
    for flags in [1, 0] {
        let mut w = Writer::default();
        let x = embeddings(&mut w);
        let y = project(&mut w, "up", x, HEAD * HEADS);
        let y = w.reshape(y, [HEAD, HEADS, TOKENS, 1]);
        w.params = vec![1e-5_f32.to_bits()];
        let y = w.op("RMS_NORM", [HEAD, HEADS, TOKENS, 1], &[y]);
        w.flags = flags;
        let decay = w.leaf(F32, [1, HEADS, TOKENS, 1]);
        let y = w.op("MUL", [HEAD, HEADS, TOKENS, 1], &[y, decay]);
        let y = w.reshape(y, [HEAD * HEADS, TOKENS, 1, 1]);
        let y = project(&mut w, "down", y, EMBD);
        finish(&mut w, y);
        let d = check(&w);
        assert_split(&d, &["up", "down"]);
    }
}

#[test]
fn what_a_convolution_remembers_is_put_before_the_tokens() {
    let mut w = Writer::default();
    let x = embeddings(&mut w);
    let (channels, taps) = (64, 4);
    let y = project(&mut w, "in", x, channels);
    let state = cache(&mut w, "state", [(taps - 1) * channels, 1, 1, 1]);
    let before = w.reshape(state, [taps - 1, channels, 1, 1]);
    let steps = w.permute(y, [1, 0, 2, 3]);
    let ne = [taps - 1 + TOKENS, channels, 1, 1];
    let all = w.op("CONCAT", ne, &[before, steps]);
    let last = w.slice(all, 0, TOKENS, taps - 1);
    w.write("CPY", &[last, state], state);
    w.name = Some("filter".to_owned());
    let filter = w.leaf(F32, [taps, channels, 1, 1]);
    let y = w.op("SSM_CONV", [channels, TOKENS, 1, 1], &[all, filter]);
    let y = w.op("SILU", [channels, TOKENS, 1, 1], &[y]);
    let y = project(&mut w, "out", y, EMBD);
    finish(&mut w, y);
    let d = check(&w);
    assert_split(&d, &["in", "state", "filter", "out"]);
}

#[test]
fn results_of_scans_are_packed() {
    let mut w = Writer::default();
    let x = embeddings(&mut w);
    let (row, one) = (HEAD * HEADS, 1);
    let heads = [HEAD, HEADS, TOKENS, one];
    let part = |w: &mut Writer, name: &str| {
        let y = project(w, name, x, row);
        w.reshape(y, heads)
    };
    let (q, k, v) = (part(&mut w, "q"), part(&mut w, "k"), part(&mut w, "v"));
    w.params = vec![1e-5_f32.to_bits()];
    let k = w.op("L2_NORM", heads, &[k]);
    let gate = |w: &mut Writer, name: &str| {
        let y = project(w, name, x, HEADS);
        let y = w.reshape(y, [1, HEADS, TOKENS, 1]);
        w.op("SIGMOID", [1, HEADS, TOKENS, 1], &[y])
    };
    let (decay, beta) = (gate(&mut w, "g"), gate(&mut w, "b"));
    let decay = w.op("NEG", decay.ne, &[decay]);
    let n_state = HEAD * HEAD * HEADS;
    let state = cache(&mut w, "state", [n_state, 1, 1, 1]);
    let old = w.reshape(state, [HEAD, HEAD, HEADS, 1]);
    w.params = vec![1];
    let packed = w.op(
        "GATED_DELTA_NET",
        [row, TOKENS + HEAD, 1, 1],
        &[q, k, v, decay, beta, old],
    );
    let bytes = 4 * row;
    let nb = [4, 4 * HEAD, bytes, bytes * TOKENS];
    let y = w.view("VIEW", packed, heads, nb, 0);
    let new = w.view(
        "VIEW",
        packed,
        [n_state, 1, 1, 1],
        [4, 4 * n_state, 4 * n_state, 4 * n_state],
        bytes * TOKENS,
    );
    w.write("CPY", &[new, state], state);
    let y = w.reshape(y, [row, TOKENS, 1, 1]);
    let y = project(&mut w, "o", y, EMBD);
    finish(&mut w, y);
    let d = check(&w);
    assert_split(&d, &["q", "k", "v", "state", "o"]);
}

#[test]
fn ids_of_experts_are_those_of_the_whole_model() {
    let mut w = Writer::default();
    let x = embeddings(&mut w);
    let (experts, used, width) = (8, 2, 24);
    let logits = project(&mut w, "router", x, experts);
    w.params = vec![1];
    let sorted = w.typed("ARGSORT", DType::I32, [experts, TOKENS, 1, 1], &[logits]);
    let ids = w.slice(sorted, 0, 0, used);
    let rows = w.reshape(x, [EMBD, 1, TOKENS, 1]);
    let product = |w: &mut Writer, name: &str, x: Tensor, out: u64| {
        w.name = Some(name.to_owned());
        let weight = w.leaf(F32, [x.ne[0], out, experts, 1]);
        let y = w.op("MUL_MAT_ID", [out, used, TOKENS, 1], &[weight, x, ids]);
        w.name = Some(format!("{name}.bias"));
        let bias = w.leaf(F32, [out, experts, 1, 1]);
        w.op("ADD_ID", [out, used, TOKENS, 1], &[y, bias, ids])
    };
    let y = product(&mut w, "up", rows, width);
    let y = w.op("SILU", y.ne, &[y]);
    let y = product(&mut w, "down", y, EMBD);
    let nb = [4, y.nb[2], y.nb[3], y.nb[3]];
    let mut row = |i: u64| w.view("VIEW", y, [EMBD, TOKENS, 1, 1], nb, i * y.nb[1]);
    let (a, b) = (row(0), row(1));
    let y = w.op("ADD", [EMBD, TOKENS, 1, 1], &[a, b]);
    finish(&mut w, y);
    let d = check(&w);
    assert_split(&d, &["up", "down"]);
    let whole = read(&w.text, "small").unwrap_or_else(|e| panic!("{e}"));
    super::forced::experts(whole).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn keys_that_tpc_does_not_know_are_passed_over() {
    let mut w = Writer::default();
    let x = embeddings(&mut w);
    let y = project(&mut w, "up", x, 64);
    let y = w.op("SILU", [64, TOKENS, 1, 1], &[y]);
    let y = project(&mut w, "down", y, EMBD);
    finish(&mut w, y);
    let plain = check(&w).sharded;
    // Some captures name a tensor's memory.
    let host = "\"buffer\":\"host\",\"flags\"";
    w.text = w.text.replace("\"flags\"", host);
    assert_eq!(check(&w).sharded, plain);
}
