//! Synthetic models whose logits llama.cpp has given: the reference executor agrees, on one device and split over several.

use std::collections::BTreeSet;

use tpc_core::golden::{Golden, distance};
use tpc_gguf::GgufFile;
use tpc_models::ARCHS;
use tpc_tests::{data, files, goldens, shared};

use super::support::run;
use super::synthetic::{fast_links, make, planned};

/// The logits of another engine, which computes in f32.
const AGAINST_GOLDEN: f64 = 1e-8;

/// Architectures without a golden model, and what makes their tiny model one that llama.cpp loads and that has
/// everything of theirs. `tests/data/synthetic/NAME.logits` is what `docs/examples/llama_logits.py` wrote for it.
const MODELS: &[(&str, &str)] = &[
    ("arcee", "biases=1"),
    (
        "bailingmoe",
        "bailingmoe.leading_dense_block_count=1,bailingmoe.expert_shared_count=2,\
         bailingmoe.expert_weights_norm=true,bailingmoe.expert_weights_scale=1.5",
    ),
    (
        "dots1",
        "kv_heads=8,biases=1,dots1.leading_dense_block_count=1,dots1.expert_gating_func=2,\
         dots1.expert_shared_count=2,dots1.expert_weights_norm=true,dots1.expert_weights_scale=1.5",
    ),
    ("ernie4_5", "biases=1"),
    ("exaone", "biases=1"),
    ("exaone-moe", "biases=1,exaone-moe.expert_gating_func=2"),
    (
        "granitemoe",
        "biases=1,experts=8,experts_used=2,granitemoe.expert_shared_feed_forward_length=256,\
         granitemoe.attention.scale=0.25,granitemoe.embedding_scale=6.0,granitemoe.residual_scale=0.5",
    ),
    ("hunyuan-dense", "biases=1"),
    (
        "nemotron_h",
        "layers=4,biases=1,kv_heads=0/4/0/0,nemotron_h.feed_forward_length=0/0/512/0,\
         nemotron_h.attention.layer_norm_epsilon=0.00001,nemotron_h.ssm.group_count=2,\
         nemotron_h.ssm.inner_size=512,nemotron_h.ssm.time_step_rank=8,nemotron_h.ssm.state_size=16,\
         nemotron_h.ssm.conv_kernel=4",
    ),
    ("openelm", "heads=4/8,kv_heads=2/4,ff=256/512"),
    ("orion", "biases=1"),
    ("plamo", ""),
    // llama.cpp 0.5.0 reads no epsilon of these files.
    (
        "qwen2vl",
        "qwen2vl.rope.dimension_sections=8/4/4/0,qwen2vl.attention.layer_norm_rms_epsilon=0.000000000001",
    ),
    ("qwen3vl", "biases=1"),
    ("qwen3vlmoe", "biases=1"),
    ("refact", "biases=1"),
    ("starcoder", "biases=1"),
    ("xverse", "biases=1"),
];

fn golden(arch: &str) -> Golden {
    let path = data().join(format!("synthetic/{arch}.logits"));
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Golden::parse(&path.display().to_string(), &bytes).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn synthetic_models_agree_with_llama_cpp() {
    for (arch, more) in MODELS {
        let file = make(&format!("{arch}-tiny:type=f32,vocab=64,{more}"));
        let golden = golden(arch);
        for devices in [1, 2, 3, 8] {
            let compiled = planned(&file, &fast_links(devices));
            assert!(compiled.model.summary.unused.is_empty(), "{arch}");
            let got = run(&compiled.programs, &file, &compiled, &golden.tokens);
            let d = distance(golden.logits.iter().map(|&x| f64::from(x)), got);
            assert!(
                d.nmse <= AGAINST_GOLDEN,
                "{arch} on {devices}: NMSE {:e}",
                d.nmse
            );
        }
    }
}

#[test]
fn every_file_of_logits_has_its_model() {
    let found: BTreeSet<String> = files(&[data().join("synthetic")], ".logits")
        .iter()
        .filter_map(|p| Some(p.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    let known: BTreeSet<String> = MODELS.iter().map(|(a, _)| (*a).to_owned()).collect();
    assert_eq!(found, known);
}

/// The names that a list of the user guide has, each at the start of a line.
fn names(list: &str) -> BTreeSet<&str> {
    let lines = list.lines().filter_map(|l| l.strip_prefix("- `"));
    lines.filter_map(|l| Some(l.split_once('`')?.0)).collect()
}

#[test]
fn the_user_guide_says_whose_logits_are_compared() {
    let guide = data().join("../../docs/src/user-guide.md");
    let guide = std::fs::read_to_string(guide).expect("the user guide");
    let (_, lists) = guide.split_once("\n## Architectures\n").expect("a section");
    let (lists, _) = lists.split_once("\n## ").unwrap_or((lists, ""));
    let (compared, others) = lists
        .split_once("\nNo logits of these")
        .unwrap_or((lists, ""));
    let (compared, others) = (names(compared), names(others));
    let every: BTreeSet<&str> = ARCHS.iter().map(|a| a.name).collect();
    assert!(compared.is_disjoint(&others));
    assert_eq!(&compared | &others, every, "the user guide lists them all");

    let mut with_logits: BTreeSet<String> = MODELS.iter().map(|(a, _)| (*a).to_owned()).collect();
    for path in goldens() {
        let file = GgufFile::open(&path).unwrap_or_else(|e| panic!("{e}"));
        let arch = file.header().metadata().require_str("general.architecture");
        with_logits.insert(arch.unwrap_or_else(|e| panic!("{e}")).to_owned());
    }
    let with_logits: BTreeSet<&str> = with_logits.iter().map(String::as_str).collect();
    assert!(with_logits.is_subset(&compared), "{with_logits:?}");
    // Only with all golden models at hand can it be said that there are no others.
    if shared().is_some() {
        assert_eq!(with_logits, compared);
    }
}
