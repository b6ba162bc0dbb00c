use super::*;
use tpc_ir::op::{BlockPart, InputKind, Op, TopMask};
use tpc_ir::{Graph, Value};

/// Returns an architecture's smallest model, with changed keys.
fn with(arch: &str, changes: &[(&str, MetaValue)]) -> Graph {
    let mut pairs = metadata(arch);
    for (key, value) in changes {
        set(&mut pairs, &format!("{arch}.{key}"), value.clone());
    }
    lower_smallest(&pairs).graph
}

fn count(graph: &Graph, name: &str) -> usize {
    graph.insts().filter(|(_, i)| i.op.name() == name).count()
}

/// Returns the block lengths of the inputs of kind `part`.
fn parts(graph: &Graph, part: BlockPart) -> Vec<u32> {
    let tokens = |op: &Op| match op {
        Op::Input(input) => match input.kind {
            InputKind::Block(block) if block.part == part => Some(block.tokens),
            _ => None,
        },
        _ => None,
    };
    graph.insts().filter_map(|(_, i)| tokens(&i.op)).collect()
}

fn masks(graph: &Graph) -> Vec<Value> {
    let attentions = graph.insts().filter(|(_, i)| i.op.name() == "flash_attn");
    attentions.map(|(_, i)| i.operands[3]).collect()
}

#[test]
fn attention_sees_what_the_indexer_selects() {
    let graph = with("deepseek32", &[]);
    let selects = |op: &Op| matches!(op, Op::TopMask(TopMask { k: 8 }));
    assert_eq!(graph.insts().filter(|(_, i)| selects(&i.op)).count(), 2);
    assert_eq!(count(&graph, "lightning_indexer"), 2);
    let [first, second] = masks(&graph)[..] else {
        panic!("two attentions");
    };
    assert!(first != second && graph.value(first).name.starts_with("indexer_mask"));
    let states = |graph: &Graph| count(graph, "state");
    assert_eq!(states(&graph), states(&with("deepseek2", &[])) + 2);
}

#[test]
fn layers_without_an_indexer_share_what_the_last_one_selected() {
    let listed = |types: Vec<u32>| with("glm-dsa", &[("attention.indexer.types", types.into())]);
    let shared = masks(&listed(vec![1, 0]));
    assert_eq!(shared[0], shared[1]);
    let own = masks(&listed(vec![1, 1]));
    assert!(own[0] != own[1]);
    assert_eq!(count(&with("glm-dsa", &[]), "top_mask"), 2);
    let long = [
        ("context_length", (1u32 << 20).into()),
        ("block_count", 4u32.into()),
    ];
    assert_eq!(count(&with("glm-dsa", &long), "top_mask"), 3);
}

#[test]
fn layers_with_a_window_have_latent_vectors_of_their_own() {
    let changes = [
        ("attention.sliding_window_pattern", vec![0u32, 1].into()),
        ("attention.kv_lora_rank_swa", 40u32.into()),
    ];
    let graph = with("dots3note", &changes);
    assert_eq!(count(&graph, "top_mask"), 1);
    let width = |layer: u32| {
        let name = format!("blk.{layer}.attn_kv_a_norm.weight");
        let (_, value) = graph.values().find(|(_, v)| v.name == name).unwrap();
        value.ty.dims[0].to_string()
    };
    assert_eq!([width(0), width(1)], ["64", "40"]);
}

#[test]
fn indexers_of_blocks_score_the_last_token_of_each() {
    for (arch, k) in [("qwen4exp", 2), ("glm5-next", 2)] {
        let graph = with(arch, &[]);
        let selects = |op: &Op| matches!(op, Op::TopMask(top) if top.k == k);
        assert_eq!(graph.insts().filter(|(_, i)| selects(&i.op)).count(), 1);
        for part in [
            BlockPart::Seen,
            BlockPart::Tail,
            BlockPart::Last,
            BlockPart::Start,
        ] {
            assert_eq!(parts(&graph, part), [4], "{arch}: {part:?}");
        }
    }
    let hidden = with(
        "glm5-next",
        &[("attention.indexer.kpool_select_tail", false.into())],
    );
    assert_eq!(count(&hidden, "log"), 0);
    assert_eq!(count(&with("glm5-next", &[]), "log"), 1);
    let dense = with("qwen4exp", &[("attention.compress_ratios", 0u32.into())]);
    assert_eq!(count(&dense, "top_mask"), 0);
    assert!(masks(&dense).iter().all(|&m| dense.value(m).name == "mask"));
}

#[test]
fn heads_that_select_by_themselves_see_short_contexts_only() {
    assert_eq!(count(&with("minimax-m3", &[]), "top_mask"), 0);
    let mut pairs = metadata("minimax-m3");
    set(&mut pairs, "minimax-m3.attention.indexer.block_size", 63u32);
    let tensors = expected::tensors(&metadata("minimax-m3"), |_| false);
    let error = lower(&header(&pairs, &tensors), &OPTIONS).unwrap_err();
    assert_eq!(error.code(), "TPC0165");
    assert!(error.help().contains("--ctx-size 504"), "{}", error.help());
}

/// Returns DeepSeek 4 with these tokens per block and layer.
fn with_blocks(ratios: &[u32]) -> Graph {
    let layers = u32::try_from(ratios.len()).unwrap();
    let changes = [
        ("block_count", layers.into()),
        ("attention.compress_ratios", ratios.to_vec().into()),
    ];
    with("deepseek4", &changes)
}

#[test]
fn layers_attend_to_their_window_and_to_rows_of_blocks() {
    let graph = with_blocks(&[0, 4, 128]);
    let [window, indexed, plain] = masks(&graph)[..] else {
        panic!("three attentions");
    };
    assert_eq!(graph.value(window).name, "mask_swa");
    let cells = |mask: Value| graph.value(mask).ty.dims[0].to_string();
    assert_eq!(cells(window), "n_kv_swa");
    assert_eq!([cells(indexed), cells(plain)], ["n_kv + n_kv_swa"; 2]);
    assert_eq!(count(&graph, "top_mask"), 1);
    assert_eq!(parts(&graph, BlockPart::Follows), [4]);
    assert_eq!(parts(&graph, BlockPart::Seen), [4, 128]);
    assert_eq!(parts(&graph, BlockPart::Place), [4, 128]);
    let changes = [
        ("block_count", 1u32.into()),
        ("attention.compress_ratios", vec![0u32, 4].into()),
    ];
    let dense = with("deepseek4", &changes);
    assert!(parts(&dense, BlockPart::Seen).is_empty());
}

#[test]
fn layers_with_blocks_have_another_rotation() {
    let graph = with_blocks(&[0, 4]);
    let bases = |layer: u32| {
        let ropes = graph.insts().filter(move |(_, i)| i.layer == Some(layer));
        let bases: std::collections::BTreeSet<u32> = ropes
            .filter_map(|(_, i)| match &i.op {
                Op::Rope(rope) => Some(rope.freq_base as u32),
                _ => None,
            })
            .collect();
        bases.into_iter().collect::<Vec<_>>()
    };
    assert_eq!([bases(0), bases(1)], [[10_000], [160_000]]);
}

#[test]
fn blocks_of_other_sizes_are_refused() {
    let mut pairs = metadata("deepseek4");
    set(&mut pairs, "deepseek4.attention.compress_ratios", 8u32);
    let error = lower(&header(&pairs, &[]), &OPTIONS).unwrap_err();
    assert_eq!(error.code(), "TPC0151");
    assert!(error.to_string().contains("0, 4 or 128"), "{error}");
}
