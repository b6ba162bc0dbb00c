use super::*;
use tpc_ir::{Graph, Op};

/// Returns an architecture's smallest model, with changed keys.
fn with(arch: &str, changes: &[(&str, MetaValue)]) -> Graph {
    let mut pairs = metadata(arch);
    if arch == "bailingmoe3" {
        set(
            &mut pairs,
            "bailingmoe3.attention.head_count_kv",
            vec![2u32, 0],
        );
    }
    for (key, value) in changes {
        set(&mut pairs, &format!("{arch}.{key}"), value.clone());
    }
    lower_smallest(&pairs).graph
}

/// Returns the sizes of one operand of the first op of that name.
fn operand(graph: &Graph, op: &str, index: usize) -> Vec<String> {
    let inst = graph.insts().find(|(_, i)| i.op.name() == op);
    let (_, inst) = inst.unwrap_or_else(|| panic!("no {op}"));
    let dims = &graph.value(inst.operands[index]).ty.dims;
    dims.iter().map(ToString::to_string).collect()
}

fn count(graph: &Graph, name: &str) -> usize {
    graph.insts().filter(|(_, i)| i.op.name() == name).count()
}

#[test]
fn channels_of_mamba_have_a_decay_per_element_and_those_of_plamo_a_decay_per_head() {
    let mamba = with("mamba", &[]);
    assert_eq!(operand(&mamba, "ssm_scan", 3)[..2], ["8", "96"]);
    assert_eq!(count(&mamba, "flash_attn"), 0);
    let plamo = with("plamo2", &[]);
    assert_eq!(operand(&plamo, "ssm_scan", 3)[..2], ["1", "6"]);
    assert_eq!(operand(&plamo, "ssm_scan", 1)[..2], ["16", "6"]);
    let [scans, attentions] = ["ssm_scan", "flash_attn"].map(|op| count(&plamo, op));
    assert_eq!([scans, attentions], [1, 1]);
}

#[test]
fn steps_of_mamba_are_normalised_if_the_key_says_so() {
    let norms = |graph: &Graph| count(graph, "rms_norm");
    let on = with("mamba", &[("ssm.dt_b_c_rms", true.into())]);
    assert_eq!(norms(&on), norms(&with("mamba", &[])) + 2 * 3);
    let jamba = with("jamba", &[]);
    assert!(
        jamba
            .values()
            .any(|(_, v)| v.name.contains("ssm_dt_norm.weight"))
    );
}

#[test]
fn delta_attention_decays_by_element_and_its_bound_changes_the_function() {
    let kimi = with("kimi-linear", &[]);
    assert_eq!(operand(&kimi, "gated_delta_net", 3)[..2], ["16", "6"]);
    assert_eq!(count(&kimi, "rope"), 0);
    assert_eq!(count(&kimi, "softplus"), 1);
    assert_eq!(count(&kimi, "ssm_conv"), 3);
    let bailing = with("bailingmoe3", &[]);
    assert_eq!(count(&bailing, "softplus"), 0);
    assert!(
        bailing
            .insts()
            .any(|(_, i)| matches!(&i.op, Op::Scale(s) if s.scale == -5.0))
    );
    let mut unbounded = metadata("bailingmoe3");
    unbounded.retain(|(k, _)| !k.ends_with("kda.gate_lower_bound"));
    let metadata = tpc_gguf::Metadata::from_pairs("test.gguf", unbounded).unwrap();
    let error = crate::expected_tensors(&metadata, &OPTIONS, |_| true).unwrap_err();
    assert!(
        error.to_string().contains("kda.gate_lower_bound"),
        "{error}"
    );
}

#[test]
fn activations_are_bounded_in_layers_with_a_bound() {
    let clamps = |limits: Vec<f32>| {
        let graph = with("bailingmoe3", &[("swiglu_clamp_exp", limits.into())]);
        count(&graph, "clamp")
    };
    let none = clamps(vec![0.0, 0.0]);
    assert_eq!(clamps(vec![0.0, 4.0]), none + 2);
    assert_eq!(clamps(vec![4.0, 0.0]), none);
}

#[test]
fn heads_of_lightning_attention_forget_at_rates_of_their_own() {
    let graph = with("minimax-01", &[("full_attention_interval", 2u32.into())]);
    assert_eq!(
        [count(&graph, "ssm_scan"), count(&graph, "flash_attn")],
        [1, 1]
    );
    assert_eq!(operand(&graph, "ssm_scan", 3)[..2], ["1", "6"]);
    assert_eq!(operand(&graph, "ssm_scan", 4)[..2], ["32", "6"]);
}
