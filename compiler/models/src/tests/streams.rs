//! Residual streams, norms and experts that other families do not have.

use super::*;
use tpc_ir::Graph;
use tpc_ir::op::Op;

/// The smallest model of an architecture, with changed keys.
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
    // Before either sublayer, but for the first, and before the output.
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
