//! Compares the list of expected tensors with real files and with the lowering.

use std::collections::BTreeMap;

use super::*;
use crate::description::Presence;
use crate::{ExpectedTensor, WeightForms, expected_tensors, expected_tensors_in};
use tpc_gguf::Metadata;

pub(super) fn tensors(
    pairs: &[(String, MetaValue)],
    keep: impl Fn(&ExpectedTensor) -> bool,
) -> Vec<(String, [u64; 4])> {
    let metadata = Metadata::from_pairs("test.gguf", pairs.to_vec()).unwrap();
    let list = expected_tensors(&metadata, &OPTIONS, keep).unwrap();
    list.into_iter().map(|t| (t.name, t.ne)).collect()
}

#[test]
fn goldens_consist_of_the_tensors_expected() {
    for (name, header) in goldens() {
        let keep = |t: &ExpectedTensor| header.tensor(&t.name).is_some();
        let has = |part: &str| header.tensors().iter().any(|t| t.name.contains(part));
        let forms = if has(".attn_qkv.") && !has(".attn_q.") {
            WeightForms::Fused
        } else {
            WeightForms::Separate
        };
        let metadata = header.metadata();
        let listed = expected_tensors_in(metadata, &options(&header), forms, keep).unwrap();
        // Some files leave out the last part of a norm's name.
        let full = |name: &str| match name.strip_suffix("_norm") {
            Some(_) => format!("{name}.weight"),
            None => name.to_owned(),
        };
        let listed = listed.into_iter().map(|t| (full(&t.name), t.ne));
        let mut listed: BTreeMap<_, _> = listed.collect();
        let found = header.tensors().iter().map(|t| (full(&t.name), t.ne));
        let mut found: BTreeMap<_, _> = found.collect();
        let ignored = lower(&header, &options(&header)).unwrap().summary.ignored;
        found.retain(|tensor, _| !unused(&name).contains(&tensor.as_str()));
        found.retain(|tensor, _| !ignored.contains(tensor));
        // Some files have separate projections, but fused gate and up.
        let of_gate = |tensor: &str| tensor.contains(".ffn_gate.") || tensor.contains(".ffn_up.");
        if header.tensor("blk.0.ffn_gate.weight").is_none() {
            listed.retain(|tensor, _| !of_gate(tensor));
            found.retain(|tensor, _| !of_gate(tensor));
        }
        // Experts' gate and up may be separate in files with other projections fused, or the reverse.
        let of_experts = |tensor: &str| {
            let stems = [".ffn_gate_exps.", ".ffn_up_exps.", ".ffn_gate_up_exps."];
            stems.iter().any(|stem| tensor.contains(stem))
        };
        if forms == WeightForms::Fused || has(".ffn_gate_up_exps.") {
            listed.retain(|tensor, _| !of_experts(tensor));
            found.retain(|tensor, _| !of_experts(tensor));
        }
        assert_eq!(listed, found, "{name}");
    }
}

#[test]
fn a_file_of_all_listed_tensors_uses_them_all() {
    for arch in ARCHS {
        let mut pairs = metadata(arch.name);
        set(
            &mut pairs,
            &format!("{}.context_length", arch.name),
            1024u32,
        );
        for keep in [false, true] {
            let tensors = tensors(&pairs, |_| keep);
            let lowered = lower(&header(&pairs, &tensors), &OPTIONS).unwrap();
            let unused = lowered.summary.unused;
            assert_eq!(unused, Vec::<String>::new(), "{}", arch.name);
        }
    }
}

#[test]
fn every_missing_required_tensor_is_named() {
    for arch in ARCHS {
        let pairs = metadata(arch.name);
        let source = Metadata::from_pairs("test.gguf", pairs.clone()).unwrap();
        let all = expected_tensors(&source, &OPTIONS, |_| true).unwrap();
        for gone in all.iter().filter(|t| t.presence == Presence::Required) {
            let rest = all.iter().filter(|t| t.name != gone.name);
            let rest: Vec<_> = rest.map(|t| (t.name.clone(), t.ne)).collect();
            let lowered = lower(&header(&pairs, &rest), &OPTIONS);
            // A layer with a dense network has experts only with a router.
            if let Ok(lowered) = &lowered {
                let is_router = gone.name.ends_with("ffn_gate_inp.weight");
                assert!(is_router && arch.name == "gemma4", "{}", gone.name);
                assert!(!lowered.summary.unused.is_empty());
                continue;
            }
            let error = lowered.unwrap_err();
            assert_eq!(error.code(), "TPC0156", "{}: {error}", arch.name);
            let text = error.to_string();
            // A file without the fused factors must have separate ones.
            let name = gone.name.replace("lerp_fused.weight", "lerp_");
            assert!(text.contains(&name), "{text}");
        }
    }
}

#[test]
fn every_wrong_shape_is_named_with_its_keys() {
    for arch in ARCHS {
        let pairs = metadata(arch.name);
        let source = Metadata::from_pairs("test.gguf", pairs.clone()).unwrap();
        let all = expected_tensors(&source, &OPTIONS, |_| true).unwrap();
        for (i, wrong) in all.iter().enumerate() {
            let mut tensors: Vec<_> = all.iter().map(|t| (t.name.clone(), t.ne)).collect();
            tensors[i].1[0] += 1;
            let error = lower(&header(&pairs, &tensors), &OPTIONS).unwrap_err();
            assert_eq!(error.code(), "TPC0157", "{}: {error}", arch.name);
            let text = error.to_string();
            assert!(
                text.contains(&wrong.name) && text.contains("axis 0"),
                "{text}"
            );
        }
    }
}
