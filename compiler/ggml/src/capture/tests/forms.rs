use tpc_ir::op::SoftMax;
use tpc_ir::{DType, Op};

use super::{Writer, captured, names};

fn ops(
    op: &str,
    dtype: &str,
    ne: [u64; 4],
    params: &[u32],
    sources: &[Option<[u64; 4]>],
) -> Vec<Op> {
    let mut w = Writer::default();
    let mut src = Vec::new();
    for sizes in sources {
        src.push(sizes.map_or(-1, |ne| w.leaf("f32", ne) as i64));
    }
    w.params = params.to_vec();
    w.line(op, dtype, ne, &src, 16, None);
    let c = captured(&w);
    let all = c.graph.insts().map(|(_, d)| d.op.clone());
    all.filter(|op| !op.is_leaf() || op.is_constant()).collect()
}

fn said(all: &[Op]) -> Vec<&'static str> {
    all.iter().map(Op::name).collect()
}

#[test]
fn a_softmax_has_slopes_and_sinks() {
    let (x, mask, sinks) = ([5, 3, 4, 1], [5, 3, 1, 1], [4, 1, 1, 1]);
    let params = [1.0_f32.to_bits(), 8.0_f32.to_bits()];
    let found = ops(
        "SOFT_MAX",
        "f32",
        x,
        &params,
        &[Some(x), Some(mask), Some(sinks)],
    );
    let wanted = SoftMax {
        max_bias: 8.0,
        ..SoftMax::with_scale(1.0)
    };
    assert_eq!(found, [Op::from(wanted)]);
    // Sinks without a mask get a mask of zeros.
    let found = ops(
        "SOFT_MAX",
        "f32",
        x,
        &params[..1],
        &[Some(x), None, Some(sinks)],
    );
    assert_eq!(said(&found), ["arange", "repeat", "soft_max"]);
    let (q, k) = ([8, 2, 4, 1], [8, 6, 4, 1]);
    let found = ops(
        "FLASH_ATTN_EXT",
        "f32",
        [8, 4, 2, 1],
        &params[..1],
        &[Some(q), Some(k), Some(k)],
    );
    assert_eq!(said(&found), ["arange", "repeat", "flash_attn"]);
}

#[test]
fn a_result_in_fewer_bits_is_rounded() {
    let found = ops("SQR", "f16", [6, 2, 1, 1], &[], &[Some([6, 2, 1, 1])]);
    assert_eq!(said(&found), ["sqr", "cast"]);
}

#[test]
fn nothing_of_a_number_and_an_infinity_is_the_infinity() {
    let params = [0.0_f32.to_bits(), f32::NEG_INFINITY.to_bits()];
    let found = ops("SCALE", "f32", [6, 2, 1, 1], &params, &[Some([6, 2, 1, 1])]);
    let value = f32::NEG_INFINITY;
    assert_eq!(found, [Op::from(tpc_ir::op::Fill { value })]);
}

#[test]
fn a_gate_of_an_odd_row_drops_its_last_element() {
    let found = ops("REGLU", "f32", [2, 3, 1, 1], &[0], &[Some([5, 3, 1, 1])]);
    assert_eq!(said(&found), ["slice", "slice", "reglu"]);
}

#[test]
fn streams_are_weighed_by_numbers_or_gates() {
    let (x, w, gates) = ([6, 4, 3, 1], [4, 3, 1, 1], [6, 4, 3, 1]);
    let sum = |params: &[u32], w| {
        let found = ops(
            "DSV4_HC_PRE",
            "f32",
            [6, 3, 1, 1],
            params,
            &[Some(x), Some(w)],
        );
        said(&found)
    };
    let plain = ["reshape", "mul", "sum", "reshape"];
    assert_eq!(sum(&[], w), plain);
    assert_eq!(sum(&[1.0_f32.to_bits()], w), plain);
    let gated = ["sigmoid", "mul", "sum", "scale", "reshape"];
    assert_eq!(sum(&[0.5_f32.to_bits(), 1], gates), gated);
    let found = ops(
        "DSV4_HC_POST",
        "f32",
        x,
        &[],
        &[Some([6, 3, 1, 1]), Some(x), Some(w)],
    );
    assert!(!said(&found).contains(&"mul_mat"), "{found:?}");
}

#[test]
fn an_optimiser_writes_its_moments() {
    let mut w = Writer::default();
    let all: Vec<usize> = (0..4).map(|_| w.leaf("f32", [6, 2, 1, 1])).collect();
    let parameters = w.leaf("f32", [7, 1, 1, 1]);
    let into = super::View {
        of: all[0],
        nb: [4, 24, 48, 48],
        offs: 0,
    };
    let sources = [&all[..], &[parameters]].concat();
    w.view("OPT_STEP_ADAMW", [6, 2, 1, 1], &sources, &into);
    // The capture does not show that the moments are states.
    for id in [2, 3] {
        let flags = format!("\"id\":{id},");
        let line = w
            .text
            .lines()
            .find(|l| l.contains(&flags))
            .unwrap_or_default()
            .to_owned();
        let with_role = line.replace("\"flags\":0", "\"flags\":0,\"role\":\"state\"");
        w.text = w.text.replace(&line, &with_role);
    }
    let c = captured(&w);
    assert!(!names(&c).contains(&"opaque"), "{}", c.graph);
    let states = c.graph.outputs.iter();
    let states = states.filter(|o| matches!(o, tpc_ir::Output::State { .. }));
    assert_eq!(states.count(), 3, "{}", c.graph);
}

#[test]
fn an_op_without_a_rule_has_what_its_record_says() {
    let found = ops(
        "IM2COL",
        "f16",
        [4, 3, 1, 1],
        &[1, 0, u32::MAX],
        &[Some([4, 1, 1, 1]), Some([6, 1, 1, 1])],
    );
    let [Op::Opaque(op)] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(
        (op.name.as_str(), op.params.as_slice()),
        ("im2col", [1, 0, -1].as_slice())
    );
    assert!(op.sources.is_empty() && op.view.is_none());
    // An absent source, and a result that views another source.
    let mut w = Writer::default();
    let x = w.leaf("f32", [8, 1, 1, 1]);
    let into = super::View {
        of: x,
        nb: [4, 8, 16, 16],
        offs: 4,
    };
    w.params = vec![7];
    w.line(
        "SOLVE_TRI",
        "f32",
        [2, 2, 1, 1],
        &[x as i64, -1, x as i64],
        16,
        Some(&into),
    );
    let err = super::read(&w.text, "test").expect_err("SOLVE_TRI has two sources");
    assert_eq!(err.code(), "TPC0188");
    w.text = w.text.replace("SOLVE_TRI", "NEW_OP");
    let c = captured(&w);
    let of = |op: &Op| match op {
        Op::Opaque(op) => Some((op.sources.clone(), op.view.clone())),
        _ => None,
    };
    let (sources, view) = c
        .graph
        .insts()
        .find_map(|(_, d)| of(&d.op))
        .expect("an op without a rule");
    assert_eq!(sources, [0, 2]);
    let view = view.expect("it writes");
    assert_eq!(
        (view.memory, view.dtype, view.offset),
        (DType::F32, DType::F32, 4)
    );
}
