//! Mutants of the order of sums: the analysis of bits must find each of them.

use tpc_cpu::CpuTarget;
use tpc_ir::op::{Scale, Weight};
use tpc_ir::program::Target;
use tpc_ir::{Graph, Inst, Interval, Op, Output, Value};
use tpc_passes::bits::{DifferenceCause, find_differences};

use crate::support::{Written, placed, plan};

/// A change of one instruction.
enum Change {
    /// Replaces the instruction's op.
    Op(Op),
    /// Swaps two operands and the results of these operands.
    Swap(usize, usize),
    /// Multiplies an operand by two first.
    Late(usize),
}

/// Returns the graph with one changed instruction.
fn changed(graph: &Graph, at: Inst, change: &Change) -> Graph {
    let mut out = Graph::new(graph.name.clone());
    out.devices.clone_from(&graph.devices);
    let mut map: Vec<Option<Value>> = vec![None; graph.values().len()];
    for (inst, data) in graph.insts() {
        let of = |v: &Value| map[v.index()].expect("operands come first");
        let mut operands: Vec<Value> = data.operands.iter().map(of).collect();
        let mut results = data.results.clone();
        let mut op = data.op.clone();
        match change {
            _ if inst != at => {}
            Change::Op(new) => op = new.clone(),
            Change::Swap(a, b) => {
                operands.swap(*a, *b);
                results.swap(*a, *b);
            }
            Change::Late(i) => {
                let scale = Scale {
                    scale: 2.0,
                    bias: 0.0,
                };
                let place = out.value(operands[*i]).place;
                let v = out
                    .push_with_inference(scale, vec![operands[*i]], place, data.layer)
                    .expect("any number can be scaled");
                operands[*i] = v;
            }
        }
        let types = results.iter().map(|&v| graph.value(v).ty.clone()).collect();
        let places: Vec<_> = results.iter().map(|&v| graph.value(v).place).collect();
        let made = out.push_at(op, operands, types, &places, data.layer);
        let made = out.inst(made).results.clone();
        for (v, new) in results.iter().zip(made) {
            out.value_mut(new).name.clone_from(&graph.value(*v).name);
            map[v.index()] = Some(new);
        }
    }
    let of = |v: Value| map[v.index()].expect("outputs are defined");
    out.outputs = graph
        .outputs
        .iter()
        .map(|o| match o {
            Output::Named(name, v) => Output::Named(name.clone(), of(*v)),
            Output::State { state, value } => Output::State {
                state: of(*state),
                value: of(*value),
            },
        })
        .collect();
    out
}

/// Returns a weight that begins 32 elements later along K, if it holds a part of K.
fn moved_boundary(op: &Op) -> Option<Op> {
    let Op::Weight(Weight { tensor, parts }) = op else {
        return None;
    };
    let mut parts = parts.clone()?;
    let first = parts.first_mut()?.first_mut()?;
    if first.start == 0 {
        return None;
    }
    *first = Interval {
        start: first.start + 32,
        len: first.len.checked_sub(32)?,
    };
    let tensor = tensor.clone();
    Some(
        Weight {
            tensor,
            parts: Some(parts),
        }
        .into(),
    )
}

#[test]
fn every_changed_order_of_a_sum_is_found() {
    let model =
        Written::new("llama:layers=2,embd=1024,heads=8,kv_heads=8,ff=2048,vocab=64,type=q8_0");
    let (mut swapped, mut moved, mut late) = (0, 0, 0);
    for devices in [2, 4, 8] {
        let graph = Graph::clone(&plan(&model.0, &placed(devices, "")).1.programs);
        let found = |graph: &Graph| find_differences(graph, CpuTarget.company());
        assert!(found(&graph).is_empty(), "{devices} devices keep the bits");
        for (inst, data) in graph.insts() {
            // Of a table's rows, all devices but one have zeros, which may be added in any order.
            let product = |v: &Value| matches!(graph.def_op(*v), Op::MulMat(_));
            if matches!(data.op, Op::AllReduce(_)) && data.operands.iter().all(product) {
                for i in 1..devices {
                    let mutant = changed(&graph, inst, &Change::Swap(i - 1, i));
                    let causes: Vec<_> = found(&mutant).iter().map(|d| d.cause).collect();
                    assert_eq!(causes, [DifferenceCause::UnequalShares], "{devices}: {i}");
                    swapped += 1;
                }
                let mutant = changed(&graph, inst, &Change::Late(0));
                let causes: Vec<_> = found(&mutant).iter().map(|d| d.cause).collect();
                assert_eq!(causes, [DifferenceCause::DeferredSum], "{devices}");
                late += 1;
            }
            if let Some(op) = moved_boundary(&data.op) {
                let mutant = changed(&graph, inst, &Change::Op(op));
                assert!(
                    found(&mutant)
                        .iter()
                        .any(|d| d.cause == DifferenceCause::UnequalShares),
                    "{devices}: {:?}",
                    data.op
                );
                moved += 1;
            }
        }
    }
    println!("{swapped} swapped, {moved} moved, {late} late");
    assert!(swapped >= 20 && moved >= 20 && late >= 6);
}
