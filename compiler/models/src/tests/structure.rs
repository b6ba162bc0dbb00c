//! Properties of every lowered graph: the smallest models, the goldens, and headers of published models.

use std::collections::BTreeSet;

use tpc_ir::op::Op;
use tpc_ir::{Graph, Output, Place};

use super::*;

/// Checks that the graph is valid, that weights, states and inputs occur once, that every value is on the host, and the
/// outputs.
pub(super) fn check(graph: &Graph) {
    if let Err(errors) = tpc_ir::verify::verify(graph) {
        panic!("{errors:#?}");
    }
    let mut leaves = BTreeSet::new();
    for (_, inst) in graph.insts() {
        let name = match &inst.op {
            Op::Weight(w) => Some(format!("weight {}", w.tensor)),
            Op::State(s) => Some(format!("state {}", s.name)),
            Op::Input(i) => Some(format!("input {:?}", i.kind)),
            _ => None,
        };
        if let Some(name) = name {
            assert!(leaves.insert(name.clone()), "{name} is there twice");
        }
    }
    for (_, value) in graph.values() {
        assert_eq!(value.place, Place::Host);
        assert!(!value.name.is_empty());
    }
    let states = graph
        .insts()
        .filter(|(_, i)| matches!(i.op, Op::State(_)))
        .count();
    let updates = graph
        .outputs
        .iter()
        .filter(|o| matches!(o, Output::State { .. }))
        .count();
    assert_eq!(states, updates);
    let Output::Named(name, logits) = &graph.outputs[0] else {
        panic!("the first output is the result");
    };
    assert!(["logits", "embeddings"].contains(&name.as_str()), "{name}");
    let axis = graph.value(*logits).ty.dims[1].to_string();
    assert_eq!(axis, "n_outputs");
}

#[test]
fn the_smallest_model_of_every_architecture_lowers() {
    for arch in ARCHS {
        let lowered = lower_smallest(&metadata(arch.name));
        check(&lowered.graph);
        assert_eq!(lowered.summary.arch, arch.name);
        assert!(lowered.summary.unused.is_empty());
        assert_eq!(lowered.summary.n_layer, 2);
    }
}

#[test]
fn every_golden_lowers() {
    for (name, header) in goldens() {
        let lowered = lower(&header, &options(&header)).unwrap();
        check(&lowered.graph);
        assert_eq!(lowered.summary.unused, unused(&name), "{name}");
        let has = |part: &str| header.tensors().iter().any(|t| t.name.contains(part));
        // Known leftovers are draft blocks, and projections that the file has in two forms.
        let ignored = has(".nextn.") || has(".attn_qkv.") && has(".ssm_in.");
        assert_eq!(!lowered.summary.ignored.is_empty(), ignored, "{name}");
    }
}

#[test]
fn every_published_header_of_a_supported_architecture_lowers() {
    let Some(folder) = shared("models") else {
        return;
    };
    let mut lowered = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "gguf") {
            continue;
        }
        let file = GgufFile::open(&path).unwrap();
        let header = file.header();
        let arch = header
            .metadata()
            .require_str("general.architecture")
            .unwrap();
        match lower(header, &OPTIONS) {
            Ok(model) => {
                check(&model.graph);
                assert!(model.summary.unused.is_empty(), "{}", path.display());
                lowered.insert(arch.to_owned());
            }
            Err(e) => {
                assert_eq!(e.code(), "TPC0150", "{}: {e}", path.display());
                assert!(ARCHS.iter().all(|a| a.name != arch));
            }
        }
    }
    for arch in [
        "gemma3", "gemma4", "glm4moe", "gpt-oss", "llama", "phi3", "qwen3", "qwen35", "qwen3moe",
    ] {
        assert!(lowered.contains(arch), "{arch}");
    }
}

#[test]
fn names_in_the_registry_are_distinct_and_sorted() {
    for pair in ARCHS.windows(2) {
        let [first, second] = [pair[0].name, pair[1].name];
        assert!(first < second, "`{second}` belongs before `{first}`");
    }
}
