use std::sync::Arc;

use tpc_ggml::capture::{Role, read, records};
use tpc_ggml::op::OpKind;
use tpc_ir::Symbol;
use tpc_rpc::{Captures, Device, Limits, Pool, Version, serve};

use super::support::{BASE, Wire, Wires, compute, conversation, message, recompute};

const WEIGHTS: u64 = BASE;
const STATES: u64 = BASE + 0x2000;
const RESULTS: u64 = BASE + 0x4000;

fn tensor(id: u64, dtype: u32, ne: [u32; 4], data: u64, name: &'static str) -> Wire {
    let buffer = [RESULTS, STATES, WEIGHTS].into_iter().find(|b| *b <= data);
    Wire {
        dtype,
        buffer: buffer.expect("a buffer"),
        data,
        ..Wire::new(id, ne, 0, name)
    }
}

const I64: u32 = 27;

fn step(tokens: u32) -> Vec<u8> {
    compute(Version::V8, &[6, 7, 8], &tensors(tokens))
}

fn tensors(tokens: u32) -> Vec<Wire> {
    let op = |kind: OpKind| kind as u32;
    let w = tensor(1, 0, [4, 6, 1, 1], WEIGHTS, "w");
    let cache = tensor(2, 0, [6, 16, 1, 1], STATES, "cache");
    let other = tensor(3, 0, [6, 1, 1, 1], STATES + 512, "other");
    let x = tensor(4, 0, [4, tokens, 1, 1], RESULTS, "x");
    let cells = Wire {
        dtype: I64,
        ..tensor(5, I64, [tokens, 1, 1, 1], RESULTS + 512, "cells")
    };
    let y = tensor(6, 0, [6, tokens, 1, 1], RESULTS + 1024, "y").op(op(OpKind::MulMat), &[1, 4]);
    let kept = Wire {
        view_src: 2,
        ..tensor(7, 0, [6, 16, 1, 1], STATES, "kept").op(op(OpKind::SetRows), &[6, 5, 2])
    };
    let sum = tensor(8, 0, [6, tokens, 1, 1], RESULTS + 1536, "sum").op(op(OpKind::Add), &[6, 3]);
    vec![w, x, y, cells, cache, kept, other, sum]
}

fn captured(graphs: &[Vec<u8>]) -> Vec<String> {
    let n = |n: u64| n.to_le_bytes();
    let mut sent = conversation(Version::V8)[0].clone();
    for _ in 0..3 {
        sent.extend(message(0, &[&[0; 4], &n(0x1000)]));
    }
    let w = tensor(1, 0, [4, 6, 1, 1], WEIGHTS, "w");
    sent.extend(message(7, &[&w.bytes(), &n(0), &n(1)]));
    sent.extend(graphs.concat());
    let sum = tensor(8, 0, [6, 1, 1, 1], RESULTS + 1536, "sum");
    sent.extend(message(8, &[&sum.bytes(), &n(0), &n(24)]));
    let captures = Captures::default();
    let limits = Limits::new(1 << 40);
    let mut got = Vec::new();
    let stream = Wires::new(&sent, &mut got);
    let pool = Arc::new(Pool::new(limits.memory));
    serve(stream, captures.connect(), pool, (Version::V8, limits))
        .expect("a conversation without faults");
    assert_eq!(captures.graphs(), graphs.len() as u64);
    assert!(got.ends_with(&[0; 24]), "what is read is zero");
    captures.texts()
}

#[test]
fn leaves_have_the_roles_of_their_memory() {
    let all = captured(&[step(8)]);
    let records = records(&all[0]).expect("a capture");
    let role = |name: &str| records.iter().find(|t| t.name == name).and_then(|t| t.role);
    assert_eq!(role("w"), Some(Role::Weight));
    assert_eq!(role("cache"), Some(Role::State));
    assert_eq!(role("other"), Some(Role::State));
    assert_eq!([role("x"), role("cells")], [Some(Role::Input); 2]);
}

#[test]
fn views_of_memory_that_stays_in_the_client_are_left_out() {
    let mut all = tensors(8);
    let elsewhere = |id: u64, name: &'static str| Wire {
        buffer: 0,
        data: 0,
        ..Wire::new(id, [8, 1, 1, 1], 0, name)
    };
    all.push(elsewhere(9, "far"));
    all.push(Wire {
        view_src: 9,
        ..elsewhere(10, "seen").op(OpKind::View as u32, &[9])
    });
    let with = compute(Version::V8, &[6, 10, 7, 8], &all);
    assert_eq!(captured(&[with]), captured(&[step(8)]));
}

#[test]
fn graphs_of_other_sizes_are_one_capture_with_symbols() {
    let again = recompute(Version::V8);
    let all = captured(&[step(1), again, step(8), step(3), step(8)]);
    assert_eq!(all.len(), 1);
    let captured = read(&all[0], "steps").expect("a capture");
    assert_eq!(captured.batch, [(Symbol::NTokens, 8), (Symbol::NCtx, 16)]);
    assert!(captured.notes.is_empty(), "{:?}", captured.notes);
    let printed = tpc_ir::text::print(&captured.graph).text;
    assert!(printed.contains("f32[6, n_tokens]"), "{printed}");
}

#[test]
fn a_size_that_no_symbol_explains_stays_a_number() {
    // The other graphs do not have six tokens.
    let one = captured(&[step(6)]);
    let both = captured(&[step(6), step(3)]);
    let sizes = |text: &str| read(text, "steps").expect("a capture").batch;
    assert_eq!(sizes(&one[0])[0], (Symbol::NTokens, 6));
    assert_eq!(sizes(&both[0])[0], (Symbol::NTokens, 6));
    let wrong = both[0].replace("\"also\":[[4, 3, 1, 1]]", "\"also\":[[4, 5, 1, 1]]");
    assert_ne!(wrong, both[0]);
    let told = read(&wrong, "steps").expect("a capture");
    assert_eq!(told.notes.len(), 1, "the captures contradict each other");
    let short = both[0].replacen(",\"also\":[[4, 6, 1, 1]]", "", 1);
    let refused = read(&short, "steps").expect_err("a capture with a hole");
    assert_eq!(tpc_diag::Diagnostic::from(refused).code.id, "TPC0180");
}

/// A client leaves nodes in the graph that a batch does not need, with memory that it has not written.
#[test]
fn nodes_without_the_compute_flag_are_left_out() {
    let mut all = tensors(8);
    let slots = tensor(11, I64, [8, 1, 1, 1], RESULTS + 2560, "slots");
    let unneeded = Wire {
        flags: 0,
        view_src: 6,
        ..tensor(12, 0, [6, 8, 1, 1], RESULTS + 1024, "unneeded")
    };
    all.extend([slots, unneeded.op(OpKind::SetRows as u32, &[6, 11, 6])]);
    let with = compute(Version::V8, &[6, 12, 7, 8], &all);
    assert_eq!(captured(&[with]), captured(&[step(8)]));
}
