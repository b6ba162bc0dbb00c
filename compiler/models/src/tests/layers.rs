//! Layers that lack parts, run several times, or read more than the previous layer.

use tpc_ir::Graph;
use tpc_ir::op::{InputKind, Op};

use super::dense::{attentions, count, deep, refused, states};
use super::*;

fn weights(graph: &Graph) -> Vec<String> {
    let found = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::Weight(w) => Some(w.tensor.clone()),
        _ => None,
    });
    found.collect()
}

#[test]
fn layers_of_deci_may_lack_attention_or_have_a_matrix_in_its_place() {
    let mut pairs = metadata("deci");
    for (key, counts) in [
        ("attention.head_count", [6u32, 6, 0, 0]),
        ("attention.head_count_kv", [2, 0, 0, 0]),
        ("feed_forward_length", [160, 160, 160, 0]),
    ] {
        set(&mut pairs, &format!("deci.{key}"), counts.to_vec());
    }
    set(&mut pairs, "deci.block_count", 4u32);
    let graph = lower_smallest(&pairs).graph;
    assert_eq!(attentions(&graph).len(), 1);
    let names = weights(&graph);
    let of = |il: u32| {
        let prefix = format!("blk.{il}.");
        let here = names.iter().filter_map(|n| n.strip_prefix(&prefix));
        let mut here: Vec<&str> = here.map(|n| n.trim_end_matches(".weight")).collect();
        here.sort_unstable();
        here
    };
    let network = ["ffn_down", "ffn_gate", "ffn_norm", "ffn_up"];
    assert_eq!(of(1)[..2], ["attn_norm", "attn_output"]);
    assert_eq!(of(1)[2..], network);
    assert_eq!(of(2), network);
    assert_eq!(of(3), [""; 0]);
}

#[test]
fn layers_of_nanbeige_run_again_with_caches_of_their_own() {
    let loops = |n: u32, skip: bool| {
        let mut pairs = metadata("nanbeige");
        set(&mut pairs, "nanbeige.num_loops", n);
        set(&mut pairs, "nanbeige.skip_loop_final_norm", skip);
        lower_smallest(&pairs).graph
    };
    let once = loops(1, false);
    let thrice = loops(3, false);
    assert_eq!(weights(&once).len(), weights(&thrice).len());
    assert_eq!(states(&once).len(), 4);
    assert_eq!(states(&thrice).len(), 12);
    let norms = |graph: &Graph| count(graph, |op| matches!(op, Op::Norm(_)));
    assert_eq!([norms(&once), norms(&thrice)], [5, 15]);
    assert_eq!(norms(&loops(3, true)), 13);
    let many = refused("nanbeige", "num_loops", 1025u32);
    assert!(many.starts_with("TPC0151 "), "{many}");
}

#[test]
fn models_of_diffusion_attend_to_later_tokens_and_have_no_caches() {
    for arch in ["dream", "llada", "llada-moe", "rnd1"] {
        let graph = deep(arch, 2);
        let masks = |kind| count(&graph, |op| matches!(op, Op::Input(i) if i.kind == kind));
        assert_eq!(masks(InputKind::MaskBatch), 1, "{arch}");
        assert_eq!(masks(InputKind::Mask), 0, "{arch}");
        assert_eq!(states(&graph).len(), 0, "{arch}");
    }
}

#[test]
fn talkie_adds_its_embedding_to_every_layer() {
    let graph = deep("talkie", 2);
    let names = weights(&graph);
    assert!(names.contains(&"blk.1.layer_output_scale.weight".to_owned()));
    let skips = graph
        .values()
        .filter(|(_, v)| v.name.starts_with("embd_skip"));
    assert_eq!(skips.count(), 2);
    // Only the query norms have weights. There are 10 norms: 4 in each of 2 layers, 1 on the embedding, 1 at the end.
    assert_eq!(count(&graph, |op| matches!(op, Op::Norm(_))), 10);
    let norms = names.iter().filter(|n| n.contains("norm"));
    assert_eq!(norms.collect::<Vec<_>>().len(), 2);
}

#[test]
fn two_stacks_run_in_turn_with_caches_for_every_run() {
    let mut pairs = metadata("hrm_text");
    for (key, n) in [
        ("block_count", 12u32),
        ("hrm.layers_per_stack", 2),
        ("hrm.l_cycles", 2),
        ("hrm.h_cycles", 2),
    ] {
        set(&mut pairs, &format!("hrm_text.{key}"), n);
    }
    let graph = lower_smallest(&pairs).graph;
    assert_eq!(states(&graph).len(), 2 * 12);
    let outputs = graph.insts().filter_map(|(_, i)| {
        let weight = graph.value(*i.operands.first()?).name.as_str();
        let block = weight
            .strip_prefix("blk.")?
            .strip_suffix(".ffn_down.weight")?;
        Some(block.to_owned())
    });
    // The low stack runs twice, then the high stack once; all this twice.
    let low_low_high = ["0", "1", "0", "1", "2", "3"];
    assert_eq!(outputs.collect::<Vec<_>>(), low_low_high.repeat(2));
    let norms = count(&graph, |op| matches!(op, Op::Norm(_)));
    assert_eq!(norms, 2 * 12 + 6, "before sublayers and behind each stack");
    let other = refused("hrm_text", "block_count", 5u32);
    assert!(
        other.starts_with("TPC0152 ") || other.starts_with("TPC0151 "),
        "{other}"
    );
}

#[test]
fn cogvlm_leaves_out_the_matrices_of_images() {
    let mut pairs = metadata("cogvlm");
    set(&mut pairs, "cogvlm.embedding_length", 192u32);
    let mut tensors = expected::tensors(&pairs, |_| false);
    tensors.push(("blk.0.vis_attn_qkv.weight".into(), [192, 576, 1, 1]));
    let lowered = lower(&header(&pairs, &tensors), &OPTIONS).unwrap();
    assert_eq!(lowered.summary.unused, Vec::<String>::new());
    assert_eq!(lowered.summary.ignored, ["blk.0.vis_attn_qkv.weight"]);
    let narrow = refused("cogvlm", "embedding_length", 288u32);
    assert!(narrow.starts_with("TPC0152 "), "{narrow}");
}
