//! Models that compute embeddings.

use tpc_ir::op::{GluKind, InputKind};
use tpc_ir::{Op, Output};

use super::dense::{count, deep, states};
use super::*;
use crate::GraphResult;

const ENCODERS: [&str; 10] = [
    "bert",
    "eurobert",
    "gemma-embedding",
    "gemma-embedding2",
    "jina-bert-v2",
    "jina-bert-v3",
    "modern-bert",
    "neo-bert",
    "nomic-bert",
    "nomic-bert-moe",
];

fn weights(graph: &tpc_ir::Graph) -> Vec<String> {
    let names = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::Weight(w) => Some(w.tensor.clone()),
        _ => None,
    });
    names.collect()
}

fn outputs(graph: &tpc_ir::Graph) -> Vec<String> {
    let named = graph.outputs.iter().filter_map(|o| match o {
        Output::Named(name, _) => Some(name.clone()),
        Output::State { .. } => None,
    });
    named.collect()
}

#[test]
fn encoders_give_embeddings_and_have_no_caches() {
    for arch in ENCODERS {
        let graph = deep(arch, 2);
        assert_eq!(outputs(&graph), ["embeddings"], "{arch}");
        assert_eq!(states(&graph).len(), 0, "{arch}");
        let causal = |op: &Op| matches!(op, Op::Input(i) if i.kind == InputKind::Mask);
        assert_eq!(count(&graph, causal), 0, "{arch}");
    }
}

#[test]
fn a_window_of_an_encoder_reaches_both_ways() {
    let graph = deep("modern-bert", 4);
    let near = |op: &Op| matches!(op, Op::Input(i) if i.kind == InputKind::MaskBatchNear(8));
    assert_eq!(count(&graph, near), 1);
    let attends = |mask: InputKind| {
        let masked = graph
            .insts()
            .filter(|(_, i)| matches!(i.op, Op::FlashAttn(_)));
        let of = masked
            .filter(|(_, i)| matches!(graph.def_op(i.operands[3]), Op::Input(i) if i.kind == mask));
        of.count()
    };
    // The first of every three layers attends to all tokens.
    assert_eq!(attends(InputKind::MaskBatch), 2);
    assert_eq!(attends(InputKind::MaskBatchNear(8)), 2);
}

#[test]
fn a_causal_encoder_is_refused() {
    for causal in [Some(true), None] {
        let mut pairs = metadata("bert");
        pairs.retain(|(k, _)| k != "bert.attention.causal");
        if let Some(causal) = causal {
            set(&mut pairs, "bert.attention.causal", causal);
        }
        let tensors = [];
        let e = lower(&header(&pairs, &tensors), &OPTIONS).unwrap_err();
        assert!(e.to_string().contains("bert.attention.causal"), "{e}");
    }
    let mut pairs = metadata("llama");
    set(&mut pairs, "llama.attention.causal", false);
    let e = lower(&header(&pairs, &[]), &OPTIONS).unwrap_err();
    assert!(e.to_string().contains("llama.attention.causal"), "{e}");
}

#[test]
fn bert_normalises_sums_and_adds_types_and_positions() {
    let graph = deep("bert", 2);
    let names = weights(&graph);
    for tensor in [
        "position_embd.weight",
        "blk.1.attn_output_norm.weight",
        "blk.1.layer_output_norm.bias",
    ] {
        assert!(names.contains(&tensor.to_owned()), "{tensor}");
    }
    // The embedding and both sums of each layer have a norm, unlike the result.
    assert_eq!(count(&graph, |op| matches!(op, Op::Norm(_))), 5);
    let mut pairs = metadata("bert");
    set(&mut pairs, "tokenizer.ggml.token_type_count", 0u32);
    let e = lower(&header(&pairs, &[]), &OPTIONS).unwrap_err();
    assert!(e.to_string().contains("token_type_count"), "{e}");
}

#[test]
fn a_file_names_the_function_of_modern_bert() {
    let kinds = |name: Option<&str>| {
        let mut pairs = metadata("modern-bert");
        if let Some(name) = name {
            set(&mut pairs, "modern-bert.hidden_activation", name);
        }
        let graph = lower_smallest(&pairs).graph;
        let of = |kind| count(&graph, |op| matches!(op, Op::Glu(g) if g.kind == kind));
        [GluKind::GegluErf, GluKind::Geglu, GluKind::Swiglu].map(of)
    };
    assert_eq!(kinds(None), [2, 0, 0]);
    assert_eq!(kinds(Some("gelu_new")), [0, 2, 0]);
    assert_eq!(kinds(Some("silu")), [0, 0, 2]);
    assert_eq!(kinds(Some("another")), [2, 0, 0]);
    let mut pairs = metadata("modern-bert");
    set(&mut pairs, "modern-bert.hidden_activation", "relu");
    let e = lower(&header(&pairs, &[]), &OPTIONS).unwrap_err();
    assert!(e.to_string().contains("hidden_activation"), "{e}");
}

#[test]
fn jina_has_a_gate_in_three_forms() {
    let pairs = metadata("jina-bert-v2");
    let fused = expected::tensors(&pairs, |_| false);
    let up = |rows: u64, gate: bool| {
        let mut tensors = fused.clone();
        for (name, ne) in &mut tensors {
            if name.ends_with("ffn_up.weight") {
                ne[1] = rows;
            }
        }
        if gate {
            for block in 0..2 {
                tensors.push((format!("blk.{block}.ffn_gate.weight"), [96, 160, 1, 1]));
            }
        }
        let graph = lower(&header(&pairs, &tensors), &OPTIONS).unwrap().graph;
        let glu = count(&graph, |op| matches!(op, Op::Glu(_)));
        [glu, count(&graph, |op| op.name() == "gelu")]
    };
    assert_eq!(up(320, false), [2, 0]);
    assert_eq!(up(160, true), [2, 0]);
    assert_eq!(up(160, false), [0, 2]);
}

#[test]
fn every_model_gives_its_last_hidden_state_on_request() {
    for arch in ["llama", "qwen3", "mamba"] {
        let pairs = metadata(arch);
        let tensors = expected::tensors(&pairs, |_| false);
        let asked = LowerOptions {
            result: GraphResult::Embeddings,
            ..OPTIONS
        };
        let graph = lower(&header(&pairs, &tensors), &asked).unwrap().graph;
        assert_eq!(outputs(&graph), ["embeddings"], "{arch}");
        let names = weights(&graph);
        assert!(!names.contains(&"output.weight".to_owned()), "{arch}");
    }
}
