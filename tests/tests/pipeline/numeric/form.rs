//! A small model has the large model's kinds of layers, and the same splits of each tensor.

use std::collections::{BTreeMap, BTreeSet};

use tpc_core::pipeline::CompiledModel;
use tpc_core::shrink::ShrunkModel;
use tpc_ir::{Class, ClassData, Graph, Op, RANK, Unreduced, Value, Verified};
use tpc_numeric::{Feed, compare, shrink};
use tpc_tests::headers;

use super::{planned, small, stem, tensors};

/// Describes a split without sizes: per axis, the split classes. Classes are numbered by first appearance in the
/// tensor.
fn splits(graph: &Graph, v: Value) -> String {
    let data = graph.value(v);
    let mut out = format!("{} {}", data.place, data.sharding.granule);
    let mut seen: Vec<Class> = Vec::new();
    for tree in &data.sharding.axes {
        let mut refs = Vec::new();
        tree.iter().for_each(|t| t.classes(&mut refs));
        out += " [";
        for r in refs {
            if !seen.contains(&r.class) {
                seen.push(r.class);
            }
            let number = seen.iter().position(|&c| c == r.class);
            out += &format!(" {number:?}/{}", r.div);
        }
        out += "]";
    }
    out + match data.sharding.unreduced {
        Unreduced::None => "",
        Unreduced::Partial => " partial",
        Unreduced::OwnerMasked(_) => " disjoint",
    }
}

fn stored(graph: &Graph) -> BTreeMap<String, (Option<u32>, String)> {
    let name = |op: &Op| match op {
        Op::Weight(w) => Some(w.tensor.clone()),
        Op::State(s) => Some(s.name.clone()),
        _ => None,
    };
    let all = graph.insts().filter_map(|(_, d)| {
        let v = d.results[0];
        let what = format!("{} {}", graph.value(v).ty.dtype, splits(graph, v));
        Some((name(&d.op)?, (d.layer, what)))
    });
    all.collect()
}

/// Returns for each device: its range of a class is empty, overlaps an earlier range, and the rank of its length.
fn pattern(class: &ClassData) -> Vec<(bool, bool, usize)> {
    let lens: BTreeSet<u64> = class.ranges.iter().map(|r| r.len).collect();
    let mut end = 0;
    class
        .ranges
        .iter()
        .map(|r| {
            let shares = r.len > 0 && r.start < end;
            end = end.max(r.end());
            (
                r.len == 0,
                shares,
                lens.iter().position(|&l| l == r.len).unwrap_or(0),
            )
        })
        .collect()
}

fn check(what: &str, compiled: &CompiledModel, shrunk: &ShrunkModel) {
    let (large, kept) = (stored(&compiled.sharded), stored(&shrunk.sharded));
    let of: BTreeMap<u32, u32> = shrunk
        .layers
        .iter()
        .flat_map(|(to, all)| all.iter().map(|&from| (from, *to)))
        .collect();
    let layers: BTreeSet<u32> = large.values().filter_map(|(l, _)| *l).collect();
    assert_eq!(
        of.keys().copied().collect::<BTreeSet<_>>(),
        layers,
        "{what}: every layer is stood for"
    );
    for (name, (layer, splits)) in &large {
        let stays = layer.is_none_or(|l| of[&l] == l);
        assert_eq!(stays, kept.contains_key(name), "{what}: {name}");
        if let Some((_, found)) = kept.get(name) {
            assert_eq!(found, splits, "{what}: {name}");
        }
    }
    for (v, data) in shrunk.sharded.values() {
        for axis in 0..RANK {
            let mut refs = Vec::new();
            data.sharding.axes[axis]
                .iter()
                .for_each(|t| t.classes(&mut refs));
            for r in refs {
                let (a, b) = (
                    compiled.sharded.class(r.class),
                    shrunk.sharded.class(r.class),
                );
                assert_eq!(a.ranges.len(), b.ranges.len(), "{what}: {v}");
                let more = |c: &ClassData| {
                    pattern(c)
                        .into_iter()
                        .map(|(none, shares, _)| (none, shares))
                        .collect::<Vec<_>>()
                };
                assert_eq!(more(a), more(b), "{what}: {}", a.name);
                let even = |c: &ClassData| pattern(c).iter().all(|p| p.2 == 0);
                assert_eq!(
                    even(a),
                    even(b),
                    "{what}: {} {:?} {:?}",
                    a.name,
                    a.ranges,
                    b.ranges
                );
                assert!(b.size <= a.size, "{what}: {}", a.name);
            }
        }
    }
    // Every kind of layer remains: a layer that stands for another has the same tensors, types and splits.
    let kind = |of: &BTreeMap<String, (Option<u32>, String)>, layer: u32| -> BTreeSet<String> {
        of.iter()
            .filter(|(_, (l, _))| *l == Some(layer))
            .map(|(name, (_, splits))| {
                let name = name
                    .replace(&format!("blk.{layer}."), "")
                    .replace(&format!("_l{layer}"), "");
                format!("{name} {splits}")
            })
            .collect()
    };
    for (&from, &to) in &of {
        assert_eq!(
            kind(&large, from),
            kind(&kept, to),
            "{what}: layer {from} by {to}"
        );
    }
}

#[test]
fn small_models_are_divided_as_large_ones() {
    for path in headers() {
        for devices in [2, 3, 5, 8] {
            let compiled = planned(&path, &tensors(devices));
            let what = format!("{} on {devices}", stem(&path));
            check(&what, &compiled, &small(&what, &compiled));
        }
    }
}

#[test]
fn a_small_model_is_small() {
    for path in headers() {
        let compiled = planned(&path, &tensors(8));
        let shrunk = small(&stem(&path), &compiled);
        let elements = |graph: &Graph| -> u64 {
            let weights = graph.insts().filter(|(_, d)| matches!(d.op, Op::Weight(_)));
            let of = |v: Value| graph.value(v).ty.elements().and_then(|n| n.as_const());
            weights.filter_map(|(_, d)| of(d.results[0])).sum()
        };
        let (large, small) = (elements(&compiled.model.graph), elements(&shrunk.model));
        assert!(
            small < 150_000_000 && small * 10 < large,
            "{}: {small} of {large}",
            stem(&path)
        );
    }
}

#[test]
fn programs_of_another_form_are_told() {
    let path = tpc_tests::goldens().remove(0);
    let mut compiled = planned(&path, &tensors(2));
    compiled.programs = planned(&path, &tensors(3)).programs;
    let shrunk = shrink(&compiled).unwrap_or_else(|d| panic!("{d}"));
    let notes = shrunk.notes();
    assert_eq!(notes[0].code, "TPC0393");
    assert!(notes[0].to_string().contains("on dev2"), "{}", notes[0]);
}

/// Returns a small model of a capture in which tpc does not know an op with two operands.
fn with_an_unknown_op() -> (ShrunkModel, Feed) {
    let path = tpc_tests::data().join("graphs/llama-dense.jsonl");
    let text = std::fs::read_to_string(path).expect("a capture");
    let is_norm = |l: &&str| l.contains(r#""name":"attn_norm-0","op":"MUL""#);
    let line = text.lines().find(is_norm).expect("a norm");
    let text = text.replacen(line, &line.replacen("MUL", "MYSTERY", 1), 1);
    let captured = tpc_ggml::capture::read(&text, "odd").unwrap_or_else(|e| panic!("{e}"));
    let compiled = tpc_core::pipeline::compile_capture(&captured, &tensors(2));
    let compiled = compiled.unwrap_or_else(|d| panic!("{}", d[0]));
    let shrunk = shrink(&compiled).unwrap_or_else(|d| panic!("{d}"));
    (shrunk, Feed::Captured(captured.batch))
}

#[test]
fn ops_that_tpc_does_not_know_have_stand_ins() {
    let (shrunk, feed) = with_an_unknown_op();
    let agreement = compare(&shrunk, &feed).unwrap_or_else(|d| panic!("{d}"));
    assert_eq!(agreement.stand_ins, ["mystery"]);
    assert!(agreement.numbers > 0 && agreement.nmse < 1e-20);
}

#[test]
fn a_wrong_operand_of_an_unknown_op_is_found() {
    let (shrunk, feed) = with_an_unknown_op();
    let text = shrunk.programs.to_string();
    let is_mystery = |l: &&str| l.contains("mystery") && l.contains("@dev1");
    let line = text.lines().find(is_mystery).expect("on both devices");
    let (head, rest) = line.split_once("= opaque ").expect("an op");
    let (operands, attrs) = rest.split_once(" {").expect("attributes");
    let (a, b) = operands.split_once(", ").expect("two operands");
    let swapped = format!("{head}= opaque {b}, {a} {{{attrs}");
    let parsed = tpc_ir::text::parse(&text.replacen(line, &swapped, 1));
    let programs = Verified::unchecked(parsed.unwrap_or_else(|e| panic!("{}", e[0])).graph);
    let d = compare(&ShrunkModel { programs, ..shrunk }, &feed).expect_err("it is wrong");
    assert_eq!(d.code, "TPC0394");
    assert!(d.to_string().contains("mystery"), "{d}");
}
