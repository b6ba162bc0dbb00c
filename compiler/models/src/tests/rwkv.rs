//! RWKV 6 and 7.

use tpc_ir::{Graph, Op};

use super::dense::{count, deep, refused, states};
use super::*;

/// Returns the sizes of the recurrence's operands in the first layer.
fn operands(graph: &Graph) -> Vec<Vec<String>> {
    let mut found = graph.insts().filter(|(_, i)| matches!(i.op, Op::Wkv(_)));
    let (_, data) = found.next().unwrap();
    let sizes = |v: &tpc_ir::Value| {
        let dims = &graph.value(*v).ty.dims;
        dims.iter().map(ToString::to_string).collect()
    };
    data.operands.iter().map(sizes).collect()
}

#[test]
fn each_layer_keeps_its_memories_and_last_inputs() {
    for (arch, shifts, more) in [
        ("rwkv6", 2, 1),
        ("rwkv6qwen2", 1, 0),
        ("rwkv7", 2, 2),
        ("arwkv7", 1, 2),
    ] {
        let graph = deep(arch, 3);
        assert_eq!(count(&graph, |op| op.name() == "wkv"), 3, "{arch}");
        assert_eq!(states(&graph).len(), 3 * (1 + shifts), "{arch}");
        let operands = operands(&graph);
        assert_eq!(operands.len(), 5 + more, "{arch}");
        // Heads of 16 elements; the memory of a head is a square.
        assert_eq!(operands[0][..2], ["16", "6"], "{arch}");
        assert_eq!(operands[4][..3], ["16", "16", "6"], "{arch}");
    }
}

#[test]
fn rwkv6_halves_its_stream_if_a_key_says_so() {
    let halves = |period: u32| {
        let mut pairs = metadata("rwkv6");
        set(&mut pairs, "rwkv6.block_count", 4u32);
        set(&mut pairs, "rwkv6.rescale_every_n_layers", period);
        let graph = lower_smallest(&pairs).graph;
        count(&graph, |op| matches!(op, Op::Scale(s) if s.scale == 0.5))
    };
    assert_eq!([0, 1, 2, 3].map(halves), [0, 4, 2, 1]);
}

#[test]
fn rwkv7_mixes_the_first_layers_values_into_later_ones() {
    let graph = deep("rwkv7", 3);
    let loads = |tensor: &str| {
        count(
            &graph,
            |op| matches!(op, Op::Weight(w) if w.tensor == tensor),
        )
    };
    assert_eq!(loads("blk.0.time_mix_v1.weight"), 0);
    assert_eq!(loads("blk.1.time_mix_v1.weight"), 1);
    // The first layer's share has another rank, and its tensors are known.
    let pairs = metadata("rwkv7");
    let tensors = expected::tensors(&pairs, |_| false);
    let rank = |name: &str| tensors.iter().find(|(n, _)| n == name).unwrap().1[1];
    assert_eq!(rank("blk.0.time_mix_v1.weight"), 8);
    assert_eq!(rank("blk.1.time_mix_v1.weight"), 16);
    let lowered = lower(&header(&pairs, &tensors), &OPTIONS).unwrap();
    assert_eq!(lowered.summary.unused, Vec::<String>::new());
}

#[test]
fn rwkv6_reads_its_shares_in_both_forms() {
    let pairs = metadata("rwkv6");
    let mut tensors = expected::tensors(&pairs, |_| false);
    let fused = lower(&header(&pairs, &tensors), &OPTIONS).unwrap().graph;
    tensors.retain(|(name, _)| !name.contains("lerp_fused"));
    for (block, part) in (0..2).flat_map(|b| "wkvrg".chars().map(move |p| (b, p))) {
        let name = format!("blk.{block}.time_mix_lerp_{part}.weight");
        tensors.push((name, [96, 1, 1, 1]));
    }
    let apart = lower(&header(&pairs, &tensors), &OPTIONS).unwrap().graph;
    let mixes = |graph: &Graph| count(graph, |op| op.name() == "mul_mat");
    assert_eq!(mixes(&fused), mixes(&apart));
}

#[test]
fn heads_must_divide_the_width() {
    let found = refused("rwkv7", "wkv.head_size", 36u32);
    assert!(found.starts_with("TPC0152 "), "{found}");
    let found = refused("rwkv6qwen2", "attention.head_count_kv", 4u32);
    assert!(found.starts_with("TPC0152 "), "{found}");
}
