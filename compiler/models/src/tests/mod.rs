//! Tests of the lowering, and the files they share.

mod codes;
mod dense;
mod drafts;
mod encoders;
mod expected;
mod experts;
mod graphs;
mod hostile;
mod layers;
mod recent;
mod recurrent;
mod rotations;
mod rwkv;
mod shapes;
mod sparse;
mod streams;
mod structure;
mod windows;
mod zeros;

use std::path::{Path, PathBuf};

use tpc_ir::DType;

use super::description::{Direction, KeyUse, RecurrentLayers};
use super::{ARCHS, Arch, Drafting, GraphResult, LowerOptions, LoweredModel, lower};
use tpc_gguf::{GgufFile, GgufWriter, Header, MetaValue};

const OPTIONS: LowerOptions = LowerOptions {
    cache_type_k: DType::F16,
    cache_type_v: DType::F16,
    ctx_size: 512,
    drafting: Drafting::None,
    result: GraphResult::Own,
};

/// Returns a folder of test material next to the checkout, if it exists.
fn shared(folder: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path = path.join(folder);
    path.is_dir().then_some(path)
}

fn goldens() -> Vec<(String, Header)> {
    let Some(folder) = shared("golden") else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "gguf") {
            continue;
        }
        let header = GgufFile::open(&path).unwrap().header().clone();
        let arch = header
            .metadata()
            .require_str("general.architecture")
            .unwrap();
        if ARCHS.iter().any(|a| a.name == arch) {
            let name = path.file_stem().unwrap().to_str().unwrap();
            out.push((name.to_owned(), header));
        }
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}

/// Returns options for a golden model: its own context if positions are learned.
fn options(golden: &Header) -> LowerOptions {
    let learned = golden.tensor("position_embd.weight");
    LowerOptions {
        ctx_size: learned.map_or(OPTIONS.ctx_size, |t| t.ne[1]),
        ..OPTIONS
    }
}

/// Returns the tensors of a golden model that do not affect the logits.
fn unused(golden: &str) -> &'static [&'static str] {
    match golden {
        "qwen3-dense-f16" => &["cls.output.weight"],
        // A bias that llama.cpp reads and does not add.
        "ernie4_5-moe-moe-q6_k" => &["blk.0.attn_output.bias", "blk.1.attn_output.bias"],
        // llama.cpp reads these biases and dense networks, but does not use them.
        "mimo2-moe-q5_k_m" => &[
            "blk.0.attn_k.bias",
            "blk.0.attn_q.bias",
            "blk.0.attn_v.bias",
            "blk.0.ffn_down.weight",
            "blk.0.ffn_gate.weight",
            "blk.0.ffn_up.weight",
            "blk.1.attn_k.bias",
            "blk.1.attn_q.bias",
            "blk.1.attn_v.bias",
            "blk.1.ffn_down.weight",
            "blk.1.ffn_gate.weight",
            "blk.1.ffn_up.weight",
        ],
        // llama.cpp does not read these tensors.
        "falcon-h1-dense-q8_0" => &[
            "rope_freqs.weight",
            "blk.0.attn_output.bias",
            "blk.1.attn_output.bias",
        ],
        "mpt-dense-q8_0" => &[
            "blk.0.attn_k_norm.bias",
            "blk.0.attn_k_norm.weight",
            "blk.1.attn_k_norm.bias",
            "blk.1.attn_k_norm.weight",
        ],
        _ => &[],
    }
}

/// Returns the graph capture of a golden model. Its name omits the quantisation.
fn capture(golden: &str) -> &str {
    golden.rsplit_once('-').unwrap().0
}

const NUMBERS: &[(&str, u32)] = &[
    ("block_count", 2),
    ("context_length", 512),
    ("embedding_length", 96),
    ("feed_forward_length", 160),
    ("attention.head_count", 6),
    ("attention.head_count_kv", 2),
    ("attention.key_length", 32),
    ("attention.value_length", 32),
    ("attention.sliding_window", 16),
    ("expert_count", 5),
    ("expert_used_count", 3),
    ("expert_feed_forward_length", 64),
    ("expert_shared_count", 1),
    ("expert_shared_feed_forward_length", 48),
    ("leading_dense_block_count", 1),
    ("interleave_moe_layer_step", 2),
    ("moe_every_n_layers", 2),
    ("vocab_size", 40),
    ("ssm.conv_kernel", 4),
    ("ssm.inner_size", 96),
    ("ssm.state_size", 8),
    ("ssm.time_step_rank", 6),
    ("ssm.group_count", 2),
    ("shortconv.l_cache", 3),
    ("kda.head_dim", 16),
    ("wkv.head_size", 16),
    ("time_mix_extra_dim", 8),
    ("time_decay_extra_dim", 8),
    ("attention.decay_lora_rank", 8),
    ("attention.iclr_lora_rank", 8),
    ("attention.value_residual_mix_lora_rank", 16),
    ("attention.gate_lora_rank", 8),
    ("experts_per_group", 5),
    ("hrm.layers_per_stack", 1),
    ("hrm.h_cycles", 1),
    ("hrm.l_cycles", 1),
    ("hyper_connection.count", 2),
    ("attention.indexer.head_count", 2),
    ("attention.indexer.key_length", 32),
    ("attention.indexer.top_k", 8),
    ("attention.indexer.kpool", 4),
    ("attention.indexer.block_size", 64),
    ("attention.compress_ratios", 4),
    ("attention.output_group_count", 2),
    ("attention.output_lora_rank", 16),
    ("hyper_connection.low_rank", 8),
    ("hyper_connection.sinkhorn_iterations", 2),
    ("ple.ngram_size", 3),
    ("ple.heads_per_ngram", 1),
    ("ple.conv_kernel", 3),
    ("ple.eos_token_id", 0),
    ("moe_latent_size", 32),
    ("adapters.count", 1),
    ("adapters.lora_rank", 4),
    ("attention.q_lora_rank", 24),
    ("attention.kv_lora_rank", 64),
    ("attention.key_length_mla", 48),
    ("attention.value_length_mla", 16),
];

/// Returns a small model's metadata without optional parts, with the keys of `arch`.
fn metadata(arch: &str) -> Vec<(String, MetaValue)> {
    let floats = [
        ("attention.layer_norm_epsilon", 1e-5f32),
        ("attention.layer_norm_rms_epsilon", 1e-6),
        ("logit_scale", 0.25),
        ("kda.gate_lower_bound", -5.0),
        ("activation.situ_beta", 4.0),
        ("expert_group_scale", 0.5),
        ("hyper_connection.epsilon", 1e-6),
        ("hyper_connection.magnitude", 2.0),
        ("attention.compress_rope_freq_base", 160_000.0),
        ("post_norm_epsilon", 1e-4),
    ];
    let name = MetaValue::Str(arch.to_owned());
    let mut pairs = vec![
        ("general.architecture".to_owned(), name),
        (format!("{arch}.use_parallel_residual"), true.into()),
        (
            format!("{arch}.rope.dimension_sections"),
            vec![0u32, 0, 16, 0].into(),
        ),
    ];
    pairs.push((
        "tokenizer.ggml.token_type_count".to_owned(),
        MetaValue::U32(2),
    ));
    let both_ways =
        |a: &&Arch| a.name == arch && a.attention.direction == Direction::BidirectionalByKey;
    if ARCHS.iter().any(both_ways) {
        pairs.push((format!("{arch}.attention.causal"), false.into()));
    }
    let xielu = ["xielu.alpha_n", "xielu.alpha_p", "xielu.beta", "xielu.eps"];
    if arch == "apertus" {
        pairs.extend(xielu.map(|key| (key.to_owned(), 0.5f32.into())));
    }
    let numbers = NUMBERS.iter();
    pairs.extend(numbers.map(|&(k, n)| (format!("{arch}.{k}"), MetaValue::U32(n))));
    pairs.extend(floats.map(|(k, x)| (format!("{arch}.{k}"), MetaValue::F32(x))));
    let arch_of = ARCHS.iter().find(|a| a.name == arch);
    if arch_of.is_some_and(|a| a.adapters != KeyUse::Ignored) {
        let lists = [
            "adapters.token_ids_activate",
            "adapters.token_ids_substitute",
        ];
        pairs.extend(lists.map(|key| (format!("{arch}.{key}"), vec![7u32].into())));
    }
    if arch_of.is_some_and(|a| a.embedding.ngrams != KeyUse::Ignored) {
        set_ngrams(&mut pairs, arch);
    }
    let layers = arch_of.and_then(|a| a.recurrent).map(|form| form.layers);
    let indexer = arch_of.and_then(|a| a.attention.indexer);
    if indexer.is_some_and(|form| form.layers == crate::description::IndexerLayers::Listed) {
        set(&mut pairs, &format!("{arch}.attention.indexer.types"), 1u32);
    }
    // With draft blocks the number of blocks varies.
    let fixed = arch_of.is_some_and(|a| a.drafts.is_none());
    if fixed && layers == Some(RecurrentLayers::WithoutKvHeads) {
        let kv_heads = format!("{arch}.attention.head_count_kv");
        set(&mut pairs, &kv_heads, vec![2u32, 0]);
    }
    pairs
}

/// Gives a model embeddings of n-grams.
fn set_ngrams(pairs: &mut Vec<(String, MetaValue)>, arch: &str) {
    let lists = [
        ("ple.layers", vec![0u32]),
        ("ple.layer_multipliers", vec![3, 5, 7]),
        ("ple.head_offsets", vec![0, 20]),
        ("ple.head_vocab_sizes", vec![20, 23]),
    ];
    pairs.extend(lists.map(|(k, list)| (format!("{arch}.{k}"), list.into())));
    let numbers = [
        ("embedding_length_per_layer_input", 48u32),
        ("full_attention_interval", 2),
    ];
    for (key, n) in numbers {
        set(pairs, &format!("{arch}.{key}"), n);
    }
}

fn set(pairs: &mut Vec<(String, MetaValue)>, key: &str, value: impl Into<MetaValue>) {
    pairs.retain(|(k, _)| k != key);
    pairs.push((key.to_owned(), value.into()));
}

fn header(pairs: &[(String, MetaValue)], tensors: &[(String, [u64; 4])]) -> Header {
    let mut writer = GgufWriter::new("test.gguf");
    for (key, value) in pairs {
        writer.meta(key, value.clone());
    }
    for (name, ne) in tensors {
        writer.tensor(name, DType::F32, ne);
    }
    writer.header().unwrap()
}

fn lower_smallest(pairs: &[(String, MetaValue)]) -> LoweredModel {
    let tensors = expected::tensors(pairs, |_| false);
    lower(&header(pairs, &tensors), &OPTIONS).unwrap()
}
