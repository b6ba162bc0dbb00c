//! Synthetic models with logits of llama.cpp: the reference executor computes the same logits, on one device and on
//! several.

use std::collections::BTreeSet;

use tpc_core::golden::{Golden, distance};
use tpc_gguf::GgufFile;
use tpc_models::ARCHS;
use tpc_tests::{Sweep, data, files, goldens, shared};

use super::support::run;
use super::synthetic::{fast_links, make, planned};

/// The maximum NMSE from the logits of llama.cpp, which computes in f32.
const AGAINST_GOLDEN: f64 = 1e-8;

/// Architectures without a golden model, and metadata keys for their tiny models. With these keys llama.cpp loads the
/// model, and every choice of the description has an effect. `docs/examples/llama_logits.py` wrote the logits,
/// `tests/data/synthetic/NAME.logits`, and `tests/engine/embeddings.cpp` the embeddings.
const MODELS: &[(&str, &str)] = &[
    ("afmoe", ""),
    ("apertus", "biases=1"),
    ("arcee", "biases=1"),
    ("arctic", ""),
    ("arwkv7", "biases=1"),
    (
        "bailingmoe",
        "bailingmoe.leading_dense_block_count=1,bailingmoe.expert_shared_count=2,\
         bailingmoe.expert_weights_norm=true,bailingmoe.expert_weights_scale=1.5",
    ),
    (
        "bailingmoe3",
        "biases=1,bailingmoe3.expert_gating_func=2,bailingmoe3.expert_shared_count=2,\
         bailingmoe3.expert_weights_scale=1.5,bailingmoe3.leading_dense_block_count=1,\
         bailingmoe3.expert_weights_norm=true",
    ),
    ("beam", ""),
    ("bert", "embd=64,head_dim=8,ff=96,biases=1"),
    // llama.cpp hides images only from the first of several tokens, so its logits are of one token at a time.
    ("chameleon", "biases=1,vocab=8200"),
    ("codeshell", "biases=1"),
    ("cohere2moe", ""),
    ("command-r", "biases=0"),
    ("deci", "biases=1"),
    (
        "deepseek32",
        "experts=4,biases=1,deepseek32.expert_gating_func=2,deepseek32.expert_feed_forward_length=512,\
         deepseek32.expert_weights_norm=true,deepseek32.expert_weights_scale=1.5",
    ),
    // Blocks that match no head of the indexer score 0, and llama.cpp picks any of them. With many heads every block
    // matches one.
    ("deepseek4", "deepseek4.attention.indexer.head_count=32"),
    (
        "dots1",
        "kv_heads=8,biases=1,dots1.leading_dense_block_count=1,dots1.expert_gating_func=2,\
         dots1.expert_shared_count=2,dots1.expert_weights_norm=true,dots1.expert_weights_scale=1.5",
    ),
    (
        "dots3note",
        "biases=1,dots3note.expert_gating_func=2,dots3note.attention.indexer.types=1/0,\
         dots3note.expert_weights_norm=true,dots3note.expert_weights_scale=1.5",
    ),
    ("dream", "biases=1"),
    ("ernie4_5", "biases=1"),
    ("eurobert", "embd=64,head_dim=8,ff=96,biases=1"),
    ("exaone", "biases=1"),
    ("exaone-moe", "biases=1,exaone-moe.expert_gating_func=2"),
    // The dense model has a golden file; this one has experts.
    (
        "gemma4",
        "layers=4,biases=1,experts=8,experts_used=2,gemma4.expert_feed_forward_length=256,\
         gemma4.attention.sliding_window_pattern=1/0/1/0",
    ),
    ("flint", "biases=1"),
    (
        "gemma-embedding",
        "embd=64,head_dim=8,ff=96,layers=2,gemma-embedding.attention.sliding_window_pattern=2,\
         gemma-embedding.rope.freq_base_swa=500.0",
    ),
    (
        "gemma-embedding2",
        "embd=64,head_dim=16,ff=96,seed=1,gemma-embedding2.rope.freq_base_swa=500.0,\
         gemma-embedding2.embedding_length_out=48",
    ),
    (
        "glm-dsa",
        "biases=1,glm-dsa.expert_weights_norm=true,glm-dsa.expert_weights_scale=1.5",
    ),
    (
        "glm5-next",
        "glm5-next.expert_gating_func=2,glm5-next.expert_weights_norm=true,glm5-next.expert_weights_scale=1.5,\
         glm5-next.swiglu_clamp_exp=0.5",
    ),
    (
        "granite_swa",
        "biases=1,granite_swa.attention.rope_pattern=0/1",
    ),
    (
        "granitemoe",
        "biases=1,experts=8,experts_used=2,granitemoe.expert_shared_feed_forward_length=256,\
         granitemoe.attention.scale=0.25,granitemoe.embedding_scale=6.0,granitemoe.residual_scale=0.5",
    ),
    (
        "graniteswitch",
        "graniteswitch.embedding_scale=6.0,graniteswitch.residual_scale=0.5,graniteswitch.attention.scale=0.25",
    ),
    ("grok", ""),
    ("grovemoe", "biases=1"),
    ("hrm_text", "biases=1,hrm_text.embedding_scale=2.0"),
    ("hunyuan-dense", "biases=1"),
    ("hunyuan_vl", ""),
    ("hy_v3", "hy_v3.expert_weights_norm=true"),
    (
        "hy_v4",
        "biases=1,hy_v4.expert_gating_func=2,hy_v4.expert_weights_norm=true,\
         hy_v4.expert_weights_scale=1.5,hy_v4.swiglu_clamp_exp=0.5",
    ),
    ("jais", ""),
    ("jais2", "biases=1"),
    ("jamba", ""),
    ("jina-bert-v2", "embd=64,head_dim=8,ff=96"),
    ("jina-bert-v3", "embd=64,head_dim=8,ff=96,biases=1"),
    ("k2-horizon", "biases=1"),
    (
        "kimi-k3",
        "biases=1,kimi-k3.expert_gating_func=2,kimi-k3.expert_weights_scale=1.5,\
         kimi-k3.expert_weights_norm=true",
    ),
    (
        "kimi-linear",
        "biases=1,kimi-linear.expert_gating_func=2,kimi-linear.expert_shared_count=2,\
         kimi-linear.expert_weights_scale=1.5,kimi-linear.leading_dense_block_count=1",
    ),
    ("kolibri1", ""),
    ("laguna", "laguna.expert_weights_scale=2.5"),
    ("lfm2moe", ""),
    ("lfm3", "biases=1"),
    ("limite", "biases=1"),
    ("llada", ""),
    ("llada-moe", ""),
    ("maincoder", "biases=1"),
    ("maion-coder", ""),
    ("mamba", ""),
    ("maple", ""),
    ("mellum", ""),
    ("minicpm", "biases=1"),
    ("minimax-01", "biases=1"),
    (
        "minimax-m3",
        "minimax-m3.expert_weights_norm=true,minimax-m3.expert_weights_scale=1.5",
    ),
    (
        "mistral-large4",
        "mistral-large4.attention.indexer.head_count=32",
    ),
    (
        "modern-bert",
        "embd=64,head_dim=8,ff=96,modern-bert.hidden_activation=silu",
    ),
    (
        "muse-glimmer",
        "biases=1,muse-glimmer.logit_scale=0.5,muse-glimmer.final_logit_softcapping=20.0,\
         muse-glimmer.rope.freq_base_swa=500000.0",
    ),
    ("muse-spark", ""),
    ("nanbeige", ""),
    (
        "nemotron_h",
        "layers=4,biases=1,kv_heads=0/4/0/0,ff=0/0/512/0,\
         nemotron_h.attention.layer_norm_epsilon=0.00001,nemotron_h.ssm.group_count=2,\
         nemotron_h.ssm.inner_size=512,nemotron_h.ssm.time_step_rank=8,nemotron_h.ssm.state_size=16,\
         nemotron_h.ssm.conv_kernel=4",
    ),
    ("neo-bert", "embd=64,head_dim=8,ff=96"),
    ("nomic-bert", "embd=64,head_dim=8,ff=96,biases=1"),
    ("nomic-bert-moe", "embd=64,head_dim=8,ff=96,biases=1"),
    ("olmo", ""),
    ("openelm", "heads=4/8,kv_heads=2/4,ff=256/512"),
    ("orion", "biases=1"),
    ("paddleocr", "biases=1"),
    ("pangu-embedded", "biases=1"),
    ("plamo", ""),
    ("plamo3", ""),
    ("plm", ""),
    ("pockettts", "biases=1"),
    ("qwen", ""),
    // llama.cpp 0.5.0 does not read the epsilon of these files.
    (
        "qwen2vl",
        "qwen2vl.rope.dimension_sections=8/4/4/0,qwen2vl.attention.layer_norm_rms_epsilon=0.000000000001",
    ),
    ("qwen3vl", "biases=1"),
    ("qwen3vlmoe", "biases=1"),
    // If the budget is not a multiple of the block size, llama.cpp shows parts of blocks.
    (
        "qwen4exp",
        "qwen4exp.attention.indexer.top_k=32,qwen4exp.expert_shared_feed_forward_length=256",
    ),
    ("refact", "biases=1"),
    ("rnd1", ""),
    ("rwkv6", ""),
    ("rwkv6qwen2", "biases=1"),
    ("rwkv7", ""),
    ("sensenova_u1", ""),
    ("smallthinker", ""),
    ("spark2_5", ""),
    ("starcoder", "biases=1"),
    ("step35", "biases=1"),
    ("talkie", ""),
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
        let vocab = match more.contains("vocab=") {
            true => "",
            false => "vocab=64,",
        };
        let file = make(&format!("{arch}-tiny:type=f32,{vocab}{more}"));
        let golden = golden(arch);
        // A sample has two numbers of devices; other tests split every architecture.
        for &devices in Sweep::asked().pick(&[1, 3][..], &[1, 2, 3, 8]) {
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

/// Returns the names in a list of the user guide; each line begins with a name.
fn names(list: &str) -> BTreeSet<&str> {
    let lines = list.lines().filter_map(|l| l.strip_prefix("- `"));
    lines.filter_map(|l| Some(l.split_once('`')?.0)).collect()
}

fn with_logits() -> BTreeSet<String> {
    let mut found: BTreeSet<String> = MODELS.iter().map(|(a, _)| (*a).to_owned()).collect();
    for path in goldens() {
        let file = GgufFile::open(&path).unwrap_or_else(|e| panic!("{e}"));
        let arch = file.header().metadata().require_str("general.architecture");
        found.insert(arch.unwrap_or_else(|e| panic!("{e}")).to_owned());
    }
    found
}

/// The user guide lists every registered architecture once: in the first list if it has logits, else in the second.
#[test]
fn no_architecture_lacks_its_line_or_its_logits() {
    let guide = data().join("../../docs/src/user-guide.md");
    let guide = std::fs::read_to_string(guide).expect("the user guide");
    let (_, lists) = guide.split_once("\n## Architectures\n").expect("a section");
    let (lists, _) = lists.split_once("\n## ").unwrap_or((lists, ""));
    let (compared, others) = lists
        .split_once("\nNo logits of these")
        .unwrap_or((lists, ""));
    let (compared, others) = (names(compared), names(others));
    let with_logits = with_logits();
    let mut lacks = Vec::new();
    for arch in ARCHS.iter().map(|a| a.name) {
        let has_logits = with_logits.contains(arch);
        let lack = match (compared.contains(arch), others.contains(arch)) {
            (false, false) => "a line in a list of docs/src/user-guide.md",
            (true, true) => "a single list of docs/src/user-guide.md: it is in both",
            (false, true) if has_logits => "its line in the first list, since it has logits",
            (true, false) if !has_logits && shared().is_some() => {
                "logits in tests/data/synthetic, or its line in the second list"
            }
            _ => continue,
        };
        lacks.push(format!("`{arch}` lacks {lack}"));
    }
    let registered: BTreeSet<&str> = ARCHS.iter().map(|a| a.name).collect();
    for name in compared.union(&others).filter(|n| !registered.contains(*n)) {
        lacks.push(format!("`{name}` lacks a description in families/"));
    }
    assert!(lacks.is_empty(), "{}", lacks.join("\n"));
}
