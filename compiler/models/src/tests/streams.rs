//! Residual streams, norms and experts of single families.

use super::*;
use tpc_ir::Graph;
use tpc_ir::op::Op;

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

#[test]
fn residual_streams_attend_to_those_that_layers_kept() {
    let mixtures = |graph: &Graph| count(graph, "soft_max");
    let plain = with("kimi-k3", &[]);
    let one = with("kimi-k3", &[("attn_res.block_size", 1u32.into())]);
    // There is a mixture before each sublayer except the first, and before the output.
    assert_eq!(mixtures(&one), mixtures(&plain) + 4);
    let adds = |graph: &Graph| count(graph, "add");
    assert!(adds(&one) > adds(&plain));
}

#[test]
fn selected_experts_read_a_latent_vector() {
    let changes = [
        ("expert_latent_length", 72u32.into()),
        ("activation.situ_linear_beta", 25.0f32.into()),
    ];
    let graph = with("kimi-k3", &changes);
    let has = |name: &str| graph.values().any(|(_, v)| v.name.contains(name));
    assert!(has("ffn_routed_down.weight") && has("ffn_routed_up.weight"));
    let (_, up) = graph
        .values()
        .find(|(_, v)| v.name.ends_with("ffn_up_exps.weight"))
        .unwrap();
    assert_eq!(up.ty.dims[0].to_string(), "72");
    assert_eq!(
        count(&graph, "tanh"),
        3 * 2,
        "a dense network, the experts and the shared one"
    );
}

#[test]
fn embeddings_and_outputs_of_muse_are_normalised() {
    let graph = with("muse-glimmer", &[]);
    let norms = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::Norm(norm) => Some(norm.eps),
        _ => None,
    });
    assert_eq!(norms.filter(|&eps| eps == 1e-8).count(), 4);
    assert_eq!(count(&graph, "sigmoid"), 2);
}

#[test]
fn streams_side_by_side_are_summed_before_a_sublayer_and_behind_the_last() {
    let keys = [
        ("attention.indexer.top_k", 0u32.into()),
        ("hyper_connection.count", 3u32.into()),
    ];
    let graph = with("hy_v4", &keys);
    let dims = |name: &str| {
        let (_, value) = graph.values().find(|(_, v)| v.name == name).unwrap();
        [0, 1].map(|i| value.ty.dims[i].to_string())
    };
    assert_eq!(dims("blk.1.hc_ffn_fn.weight"), ["288", "6"]);
    assert_eq!(dims("output_hc_fn.weight"), ["288", "3"]);
    assert_eq!(dims("l_out-1"), ["96", "3"]);
    let sums = graph.values().filter(|(_, v)| v.name.starts_with("hc_sum"));
    // Each of the five sums takes a product, a sum and a matrix.
    assert_eq!(sums.count(), 3 * 5);
    assert_eq!(count(&graph, "top_mask"), 0);
    let types = ("attention.indexer.types", vec![1u32, 0].into());
    assert_eq!(count(&with("hy_v4", &[types]), "top_mask"), 1);
}

#[test]
fn experts_of_groups_read_the_output_of_the_selected_ones() {
    let changes = [
        ("expert_count", 6u32.into()),
        ("experts_per_group", 3u32.into()),
    ];
    let graph = with("grovemoe", &changes);
    let dims = |name: &str| {
        let (_, value) = graph.values().find(|(_, v)| v.name == name).unwrap();
        [0, 1, 2].map(|i| value.ty.dims[i].to_string())
    };
    assert_eq!(dims("blk.0.ffn_up_chexps.weight"), ["96", "32", "2"]);
    let weight = |name: &str| graph.values().find(|(_, v)| v.name == name).unwrap().0;
    let inputs = |name: &str| {
        let (_, inst) = graph
            .insts()
            .find(|(_, i)| i.operands.first() == Some(&weight(name)))
            .unwrap();
        graph.value(inst.operands[1]).def.0
    };
    let read = &graph.inst(inputs("blk.0.ffn_up_chexps.weight")).operands[0];
    assert!(graph.value(*read).name.starts_with("ffn_moe_out"));
    let mut pairs = metadata("grovemoe");
    set(&mut pairs, "grovemoe.experts_per_group", 4u32);
    let refused = lower(&header(&pairs, &[]), &OPTIONS).unwrap_err();
    assert!(
        refused.to_string().contains("experts_per_group"),
        "{refused}"
    );
}

#[test]
fn streams_mix_by_a_matrix_or_not() {
    let mixed = with("glm5-next", &[]);
    let combs = mixed.insts().filter_map(|(_, i)| match &i.op {
        Op::HcComb(comb) => Some(comb.iterations),
        _ => None,
    });
    assert_eq!(combs.collect::<Vec<_>>(), [2; 4], "before each sublayer");
    assert_eq!(count(&with("qwen4exp", &[]), "hc_comb"), 0);
}

#[test]
fn one_layer_reads_the_embeddings_of_n_grams() {
    let graph = with("qwen4exp", &[]);
    let hashes = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::NgramRows(op) => Some((i.layer, op.clone())),
        _ => None,
    });
    let hashes: Vec<_> = hashes.collect();
    let [(Some(0), hash)] = &hashes[..] else {
        panic!("{hashes:?}");
    };
    assert_eq!(
        (hash.factors.len(), hash.tables.len(), hash.end_row()),
        (3, 2, 43)
    );
    let none = with(
        "qwen4exp",
        &[("ple.layers", MetaValue::from(Vec::<u32>::new()))],
    );
    assert_eq!(count(&none, "ngram_rows"), 0);
}
