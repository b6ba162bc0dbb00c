//! If a plan promises it, logits have equal bits for any number of devices and threads.

use std::path::Path;

use tpc_cpu::{CpuOptions, CpuTarget};
use tpc_ir::program::Target;
use tpc_ir::{DType, Graph};
use tpc_passes::bits::find_differing_sums;
use tpc_synth::FileType;
use tpc_tests::{Sweep, goldens};

use crate::support::{
    Written, company, config, cpu_session, golden, name, one_by_one, placement, plan, whole,
};

const SAMPLE: [&str; 4] = ["gemma3", "glm4-dense", "llama-dense", "mamba2"];

/// Returns the bits of a model's logits, for one batch and for single tokens.
fn logits(path: &Path, devices: usize, threads: usize, two_terms: u64) -> (Graph, [Vec<u64>; 2]) {
    of_tokens((path, &golden(path).tokens), devices, threads, two_terms)
}

/// Returns the bits of these tokens' logits, for one batch and for single tokens.
fn of_tokens(
    (path, tokens): (&Path, &[u32]),
    devices: usize,
    threads: usize,
    two_terms: u64,
) -> (Graph, [Vec<u64>; 2]) {
    let plan = plan(path, &placement(devices, DType::F16));
    let options = CpuOptions {
        two_terms,
        ..CpuOptions::with_threads(threads)
    };
    let config = config(&plan.1, tokens.len());
    let session = || cpu_session(&plan, config, [1, tokens.len()], options);
    let bits = |logits: Vec<f64>| logits.into_iter().map(f64::to_bits).collect();
    let found = [
        bits(whole(&mut session(), tokens)),
        bits(one_by_one(&mut session(), tokens, 0)),
    ];
    (Graph::clone(&plan.1.programs), found)
}

#[test]
fn plans_know_which_products_the_executor_computes_in_two_terms() {
    assert_eq!(CpuTarget.company().two_term_weights, CpuOptions::TWO_TERMS);
}

#[test]
fn even_shares_have_the_bits_of_one_device() {
    let only = std::env::var("TPC_MODEL").unwrap_or_default();
    let (mut models, mut same, mut promised) = (0, 0, 0);
    for path in goldens() {
        let name = name(&path);
        let sampled = SAMPLE.iter().any(|s| name.starts_with(s));
        if !name.contains(&only) || !(sampled || Sweep::asked() == Sweep::Full) {
            continue;
        }
        models += usize::from(sampled);
        // Nearly all products of these small models have two terms. In large models, products have one.
        for two_terms in [0, CpuOptions::TWO_TERMS] {
            let (_, one) = logits(&path, 1, 2, two_terms);
            assert_eq!(one, logits(&path, 1, 1, two_terms).1, "{name}: threads");
            for devices in [2, 3, 4, 8] {
                let (graph, found) = logits(&path, devices, 2, two_terms);
                let reasons = find_differing_sums(&graph, company(two_terms));
                let equal = found == one;
                let why: Vec<_> = reasons.iter().map(|(why, of)| (why, of.sums)).collect();
                println!("{name} on {devices}, two terms to {two_terms}: same {equal} {why:?}");
                assert!(equal || !reasons.is_empty(), "{name} on {devices}");
                same += usize::from(equal);
                promised += usize::from(reasons.is_empty());
            }
        }
    }
    // With one-term products on two devices, every model of the sample promises the bits, except one with other shares.
    assert!(models > 0 && promised + 1 >= models || !only.is_empty());
    println!("{same} have the bits of one device, {promised} of them by their shares");
}

#[test]
fn each_type_of_weights_has_the_bits_that_are_promised() {
    let mut kept = Vec::new();
    for dtype in FileType::allowed_types() {
        let spec = format!(
            "llama:layers=1,embd=512,heads=4,kv_heads=4,ff=1024,vocab=32,type={}",
            dtype.name()
        );
        // The writer cannot write some types; tpc's files do not use them.
        let Some(model) = Written::of(&spec) else {
            continue;
        };
        let subject = (model.0.as_path(), &[3, 10, 17, 24, 31][..]);
        let (_, one) = of_tokens(subject, 1, 2, 0);
        for devices in [2, 4] {
            let (graph, found) = of_tokens(subject, devices, 2, 0);
            if find_differing_sums(&graph, company(0)).is_empty() {
                assert_eq!(found, one, "{dtype} on {devices}");
                kept.push((dtype, devices));
            }
        }
    }
    println!("{kept:?}");
    // With four devices, shares of longer blocks do not end at eighths.
    for (dtype, devices) in [
        (DType::F16, 4),
        (DType::Q8_0, 4),
        (DType::Q4K, 2),
        (DType::Q1_0, 4),
        (DType::Q2_0, 4),
    ] {
        let kept = kept.contains(&(dtype, devices));
        assert!(kept, "{dtype} on {devices}: nothing is promised");
    }
}
