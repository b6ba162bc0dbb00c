use tpc_models::ARCHS;

/// A named specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name.
    pub name: String,
    /// The full specification.
    pub spec: String,
}

/// The sizes of tiny models: rows of whole K-quant blocks, and heads for two to eight devices.
const TINY: &str =
    "layers=2,embd=256,heads=8,kv_heads=4,head_dim=32,ff=512,vocab=320,ctx=256,type=mixed";

/// The additional keys of small models: sizes as in published files, and keys that llama.cpp requires.
const SMALL_OF: &[(&str, &str)] = &[
    (
        "afmoe",
        "layers=4,window=16,afmoe.leading_dense_block_count=1,afmoe.expert_shared_count=1,\
         afmoe.expert_weights_norm=true,afmoe.expert_weights_scale=2.5",
    ),
    ("bailingmoe", "bailingmoe.expert_shared_count=1"),
    ("arwkv7", "embd=512,kv_heads=8,head_dim=64"),
    (
        "bailingmoe2",
        "bailingmoe2.leading_dense_block_count=1,bailingmoe2.expert_shared_count=1,\
         bailingmoe2.expert_group_count=4,bailingmoe2.expert_group_used_count=2,experts=8,\
         bailingmoe2.expert_gating_func=2",
    ),
    (
        "bailingmoe3",
        "kv_heads=4/0,bailingmoe3.kda.gate_lower_bound=-5.0,bailingmoe3.swiglu_clamp_exp=4.0,\
         bailingmoe3.swiglu_clamp_shexp=5.0,bailingmoe3.expert_shared_count=1,\
         bailingmoe3.leading_dense_block_count=0,bailingmoe3.expert_gating_func=2",
    ),
    (
        "beam",
        "layers=4,window=16,beam.attention.sliding_window_pattern=1/1/1/0,beam.rope.freq_base_swa=500.0,\
         beam.attention.temperature_length=8,beam.leading_dense_block_count=1,beam.expert_weights_norm=true,\
         beam.expert_weights_scale=2.5",
    ),
    ("bert", "kv_heads=8"),
    ("bloom", "kv_heads=8"),
    ("chameleon", "vocab=8200"),
    ("cogvlm", "kv_heads=8"),
    ("cohere2", "layers=4,window=16,tied=1"),
    (
        "cohere2moe",
        "layers=4,window=16,cohere2moe.leading_dense_block_count=1,cohere2moe.expert_shared_count=2,\
         cohere2moe.expert_weights_norm=true",
    ),
    ("command-r", "tied=1"),
    ("dbrx", "dbrx.attention.clamp_kqv=8.0"),
    (
        "deci",
        "layers=5,deci.attention.head_count=8/8/0/0/8,deci.attention.head_count_kv=4/0/0/0/4,\
         deci.feed_forward_length=512/512/512/0/512",
    ),
    (
        "deepseek",
        "deepseek.leading_dense_block_count=1,deepseek.expert_shared_count=2",
    ),
    ("deepseek2", "experts=4,deepseek2.expert_shared_count=1"),
    (
        "deepseek32",
        "deepseek32.leading_dense_block_count=1,deepseek32.expert_shared_count=1,\
         deepseek32.attention.indexer.head_count=4,deepseek32.attention.indexer.key_length=64,\
         deepseek32.attention.indexer.top_k=8,experts=4,deepseek32.expert_gating_func=2",
    ),
    (
        "deepseek4",
        "layers=3,kv_heads=1,window=16,deepseek4.rope.dimension_count=16,deepseek4.attention.q_lora_rank=96,\
         deepseek4.attention.output_group_count=4,deepseek4.attention.output_lora_rank=32,\
         deepseek4.attention.compress_ratios=0/4/128,deepseek4.attention.compress_rope_freq_base=160000.0,\
         deepseek4.attention.indexer.head_count=4,deepseek4.attention.indexer.key_length=64,\
         deepseek4.attention.indexer.top_k=4,deepseek4.hyper_connection.count=4,\
         deepseek4.hyper_connection.epsilon=0.000001,deepseek4.hyper_connection.sinkhorn_iterations=3,\
         deepseek4.hash_layer_count=1,deepseek4.expert_shared_count=1,deepseek4.expert_gating_func=4,\
         deepseek4.expert_weights_norm=true,deepseek4.expert_weights_scale=1.5,deepseek4.swiglu_clamp_exp=2.0",
    ),
    (
        "dots1",
        "kv_heads=8,dots1.expert_shared_count=1,dots1.expert_gating_func=2,dots1.leading_dense_block_count=1",
    ),
    (
        "dots3note",
        "window=16,dots3note.leading_dense_block_count=1,dots3note.expert_shared_count=1,\
         dots3note.attention.sliding_window_pattern=0/1,dots3note.rope.freq_base_swa=500000.0,\
         dots3note.attention.kv_lora_rank_swa=64,dots3note.attention.key_length_mla_swa=96,\
         dots3note.attention.value_length_mla_swa=64,dots3note.attention.key_length_swa=96,\
         dots3note.attention.value_length_swa=64,dots3note.attention.indexer.head_count=4,\
         dots3note.attention.indexer.key_length=64,dots3note.attention.indexer.top_k=8,\
         dots3note.attention.indexer.types=1/0,dots3note.expert_gating_func=2",
    ),
    (
        "ernie4_5-moe",
        "layers=3,ernie4_5-moe.leading_dense_block_count=1,ernie4_5-moe.interleave_moe_layer_step=1",
    ),
    (
        "exaone-moe",
        "layers=4,window=16,exaone-moe.leading_dense_block_count=1,exaone-moe.expert_weights_norm=true,\
         exaone-moe.expert_weights_scale=2.5,exaone-moe.expert_gating_func=2",
    ),
    (
        "flint",
        "layers=3,window=16,flint.attention.sliding_window_pattern=1/0/1,flint.attention.rope_pattern=1/1/0,\
         flint.leading_dense_block_count=1,flint.expert_shared_count=1,flint.expert_shared_feed_forward_length=256,\
         flint.expert_gating_func=2,flint.expert_weights_norm=true,flint.expert_weights_scale=1.5",
    ),
    ("gemma2", "window=16,tied=1"),
    ("gemma3", "layers=6,window=16,tied=1"),
    (
        "gemma4",
        "layers=8,window=16,tied=1,gemma4.attention.sliding_window_pattern=1/1/0/1/1/0/1/0,gemma4.rope.dimension_count_swa=16,\
         gemma4.attention.key_length_swa=16,gemma4.attention.value_length_swa=16,\
         gemma4.attention.shared_kv_layers=2,gemma4.embedding_length_per_layer_input=32",
    ),
    ("gemma-embedding", "layers=6,window=16"),
    (
        "gemma-embedding2",
        "window=16,gemma-embedding2.attention.sliding_window_pattern=2,gemma-embedding2.attention.key_length_swa=16,gemma-embedding2.attention.value_length_swa=16,\
         gemma-embedding2.rope.dimension_count_swa=16,gemma-embedding2.embedding_length_per_layer_input=32,\
         gemma-embedding2.embedding_length_out=192",
    ),
    (
        "glm-dsa",
        "glm-dsa.leading_dense_block_count=1,glm-dsa.expert_shared_count=1,glm-dsa.attention.indexer.types=1/0,\
         glm-dsa.attention.indexer.head_count=4,glm-dsa.attention.indexer.key_length=64,\
         glm-dsa.attention.indexer.top_k=8",
    ),
    (
        "glm4moe",
        "glm4moe.leading_dense_block_count=1,glm4moe.expert_shared_count=1,glm4moe.expert_weights_norm=true",
    ),
    (
        "glm5-next",
        "kv_heads=4/0,glm5-next.rope.dimension_count=0,glm5-next.leading_dense_block_count=1,\
         glm5-next.expert_shared_count=1,glm5-next.kda.gate_lower_bound=-5.0,glm5-next.hyper_connection.count=4,\
         glm5-next.hyper_connection.epsilon=0.00001,glm5-next.hyper_connection.sinkhorn_iterations=3,\
         glm5-next.attention.indexer.head_count=4,glm5-next.attention.indexer.key_length=64,\
         glm5-next.attention.indexer.top_k=8,glm5-next.attention.indexer.kpool=4",
    ),
    ("gpt-oss", "window=16,type=mxfp4_moe"),
    ("gpt2", "kv_heads=8,tied=1"),
    (
        "granite_swa",
        "window=16,granite_swa.attention.sliding_window_pattern=1/0",
    ),
    (
        "granitehybrid",
        "kv_heads=4/0,granitehybrid.ssm.inner_size=512",
    ),
    (
        "graniteswitch",
        "graniteswitch.adapters.count=2,graniteswitch.adapters.lora_rank=8,graniteswitch.adapters.token_ids_activate=5/9,\
         graniteswitch.adapters.token_ids_substitute=3/4",
    ),
    ("grok", "grok.attention.output_scale=0.25"),
    (
        "grovemoe",
        "grovemoe.experts_per_group=2,grovemoe.expert_group_scale=0.5,\
         grovemoe.expert_chunk_feed_forward_length=128",
    ),
    (
        "hrm_text",
        "layers=6,hrm_text.hrm.layers_per_stack=1,hrm_text.hrm.h_cycles=2,hrm_text.hrm.l_cycles=2",
    ),
    (
        "hunyuan_vl",
        "hunyuan_vl.rope.dimension_sections=8/4/4/0,hunyuan_vl.rope.scaling.alpha=1000.0",
    ),
    (
        "hy_v4",
        "hy_v4.leading_dense_block_count=1,hy_v4.expert_shared_count=1,hy_v4.hyper_connection.count=3,\
         hy_v4.hyper_connection.epsilon=0.00001,hy_v4.hyper_connection.magnitude=2.0,\
         hy_v4.attention.indexer.types=1/0,hy_v4.attention.indexer.head_count=4,\
         hy_v4.attention.indexer.key_length=64,hy_v4.attention.indexer.top_k=8,hy_v4.expert_gating_func=2",
    ),
    ("jais", "jais.attention.max_alibi_bias=8.0"),
    ("jamba", "kv_heads=4/0"),
    ("jina-bert-v2", "kv_heads=8,biases=1"),
    ("jina-bert-v3", "kv_heads=8"),
    (
        "k2-horizon",
        "experts=4,experts_used=2,k2-horizon.expert_feed_forward_length=512,k2-horizon.leading_dense_block_count=1,\
         k2-horizon.attention.group_norm_groups=2,k2-horizon.expert_shared_count=1,\
         k2-horizon.attention.value_expert_count=4,k2-horizon.attention.value_expert_used_count=2,\
         k2-horizon.expert_weights_norm=true,k2-horizon.expert_weights_scale=2.5",
    ),
    (
        "kimi-k3",
        "layers=4,kv_heads=4/0/0/4,kimi-k3.leading_dense_block_count=1,kimi-k3.expert_shared_count=1,\
         kimi-k3.expert_latent_length=128,kimi-k3.attn_res.block_size=2,kimi-k3.activation.situ_beta=4.0,\
         kimi-k3.activation.situ_linear_beta=25.0,kimi-k3.kda.gate_lower_bound=-5.0,kimi-k3.expert_gating_func=2",
    ),
    (
        "kimi-linear",
        "kv_heads=4/0,kimi-linear.attention.q_lora_rank=0,kimi-linear.expert_shared_count=1,\
         kimi-linear.expert_gating_func=2",
    ),
    (
        "kolibri1",
        "layers=3,window=16,kolibri1.attention.sliding_window_pattern=1/0/1,kolibri1.expert_shared_count=1,\
         kolibri1.expert_shared_feed_forward_length=256,kolibri1.expert_gating_func=2,\
         kolibri1.expert_weights_norm=true",
    ),
    (
        "laguna",
        "layers=4,window=16,laguna.leading_dense_block_count=1,laguna.rope.dimension_count=16,\
         laguna.rope.dimension_count_swa=32,laguna.rope.freq_base_swa=500.0,laguna.expert_weights_norm=true",
    ),
    ("lfm2", "kv_heads=4/0"),
    (
        "lfm2moe",
        "layers=3,kv_heads=4/0/4,lfm2moe.leading_dense_block_count=1,lfm2moe.expert_gating_func=2",
    ),
    ("llama4", "layers=4"),
    (
        "lfm3",
        "layers=3,kv_heads=4/0/4,window=16,lfm3.attention.sliding_window_pattern=1/0/0,lfm3.rope.freq_base_swa=500.0",
    ),
    (
        "limite",
        "layers=4,window=16,limite.attention.scale=0.125,limite.attention.xsa_epsilon=0.000001,\
         limite.final_logit_sigmoid_capping=15.0/1.0/3.0,limite.mudd.tap_count=3,\
         limite.mudd.feed_forward_length=16,limite.mudd.tap_indices=-1/-1/-1/-1/-1/-1/0/1/2/0/2/3",
    ),
    (
        "maion-coder",
        "layers=4,window=16,maion-coder.attention.sliding_window_pattern=1/1/0/1,\
         maion-coder.interleave_moe_layer_step=2,maion-coder.moe_latent_size=128",
    ),
    (
        "maple",
        "layers=4,window=16,maple.attention.sliding_window_pattern=1/1/1/0,maple.swiglu_clamp_exp=0.5",
    ),
    ("mellum", "layers=4,window=16"),
    (
        "mimo2",
        "layers=4,window=16,mimo2.attention.sliding_window_pattern=0/1/1/0,mimo2.expert_gating_func=2",
    ),
    (
        "minimax-01",
        "minimax-01.full_attention_interval=2,minimax-01.residual_scale=3.5",
    ),
    ("minimax-m2", "minimax-m2.expert_gating_func=2"),
    (
        "minimax-m3",
        "minimax-m3.leading_dense_block_count=1,minimax-m3.expert_shared_count=1,minimax-m3.expert_gating_func=2,\
         minimax-m3.rope.dimension_count=16,minimax-m3.attention.indexer.head_count=4,\
         minimax-m3.attention.indexer.key_length=64,minimax-m3.attention.indexer.top_k=4096,\
         minimax-m3.attention.indexer.block_size=4,minimax-m3.attention.indexer.local_blocks=1,kv_heads=4",
    ),
    ("mistral4", "experts=4,mistral4.expert_shared_count=1"),
    (
        "modern-bert",
        "layers=4,kv_heads=8,window=16,modern-bert.rope.freq_base_swa=500.0",
    ),
    (
        "mistral-large4",
        "layers=4,mistral-large4.attention.layer_norm_epsilon=0.00001,\
         mistral-large4.attention.rope_pattern=1/0/1/0,mistral-large4.attention.kv_source_map=0/1/0/1,\
         mistral-large4.attention.indexer.types=1/0/1/1,mistral-large4.attention.indexer.head_count=4,\
         mistral-large4.attention.indexer.key_length=64,mistral-large4.attention.indexer.top_k=8,\
         mistral-large4.leading_dense_block_count=1,mistral-large4.expert_shared_count=1,\
         mistral-large4.expert_gating_func=2,mistral-large4.expert_weights_norm=true,\
         mistral-large4.expert_weights_scale=1.5",
    ),
    ("muse-glimmer", "layers=4,window=16"),
    (
        "muse-spark",
        "layers=3,window=16,muse-spark.attention.sliding_window_pattern=1/0/1,muse-spark.rope.freq_base_swa=500.0,\
         muse-spark.post_norm_epsilon=0.001,muse-spark.final_logit_softcapping=20.0,muse-spark.moe_latent_size=128,\
         muse-spark.expert_gating_func=2,muse-spark.expert_weights_norm=true,muse-spark.expert_weights_scale=1.5",
    ),
    ("nanbeige", "nanbeige.num_loops=2"),
    (
        "nemotron_h",
        "layers=3,kv_heads=0/4/0,ff=0/0/512,\
         nemotron_h.attention.layer_norm_epsilon=0.00001",
    ),
    (
        "nemotron_h_moe",
        "layers=3,kv_heads=0/4/0,ff=0/0/512,\
         nemotron_h_moe.attention.layer_norm_epsilon=0.00001",
    ),
    ("neo-bert", "kv_heads=8"),
    ("nomic-bert", "kv_heads=8"),
    ("nomic-bert-moe", "kv_heads=8,experts=8,experts_used=2"),
    ("olmo", "olmo.attention.clamp_kqv=8.0"),
    ("olmoe", "kv_heads=8"),
    ("paddleocr", "paddleocr.rope.dimension_sections=8/4/4/0"),
    ("phi3", "ctx=512"),
    ("plamo2", "kv_heads=4/0"),
    (
        "plamo3",
        "window=16,plamo3.attention.sliding_window_pattern=2",
    ),
    ("plm", "kv_heads=8"),
    ("pockettts", "kv_heads=8,tied=1"),
    ("qwen", "kv_heads=8"),
    ("qwen2vl", "qwen2vl.rope.dimension_sections=8/4/4/0"),
    ("qwen35", "layers=4"),
    ("qwen35moe", "layers=4"),
    ("qwen3next", "layers=4"),
    ("qwen3tts", "vocab=3072"),
    (
        "qwen4exp",
        "qwen4exp.full_attention_interval=2,qwen4exp.hyper_connection.count=3,\
         qwen4exp.hyper_connection.low_rank=32,qwen4exp.attention.compress_ratios=4/4,\
         qwen4exp.attention.indexer.head_count=4,qwen4exp.attention.indexer.key_length=64,\
         qwen4exp.attention.indexer.top_k=8,qwen4exp.ple.layers=0/,qwen4exp.ple.ngram_size=3,\
         qwen4exp.ple.heads_per_ngram=2,qwen4exp.ple.conv_kernel=4,qwen4exp.ple.eos_token_id=2,\
         qwen4exp.embedding_length_per_layer_input=64,\
         qwen4exp.ple.layer_multipliers=u64:3735928559/2654435761/40503,\
         qwen4exp.ple.head_offsets=u64:0/61/128/187,qwen4exp.ple.head_vocab_sizes=u64:61/67/59/69",
    ),
    ("rwkv6", "kv_heads=8,rwkv6.rescale_every_n_layers=2"),
    // llama.cpp reads heads of RWKV 7 in steps of 64 elements.
    ("rwkv7", "embd=512,kv_heads=8,head_dim=64"),
    (
        "sensenova_u1",
        "sensenova_u1.rope.freq_base_spatial=10000.0",
    ),
    (
        "smallthinker",
        "layers=5,window=16,smallthinker.expert_gating_func=2",
    ),
    (
        "spark2_5",
        "layers=4,window=16,spark2_5.attention.sliding_window_pattern=1/1/1/0,spark2_5.rope.freq_base_swa=500.0",
    ),
    (
        "step35",
        "layers=4,heads=8/12/12/8,window=16,step35.attention.sliding_window_pattern=0/1/1/0,\
         step35.rope.freq_base_swa=500.0,step35.expert_shared_feed_forward_length=256,\
         step35.expert_weights_norm=true,step35.expert_weights_scale=3.0,step35.swiglu_clamp_exp=0.5,\
         step35.swiglu_clamp_shexp=0.75",
    ),
];

const SIZES: &[(&str, &str)] = &[
    (
        "command-r-35b",
        "command-r:layers=40,embd=8192,heads=64,ff=22528,vocab=256000,ctx=131072,tied=1",
    ),
    (
        "gemma3-27b",
        "gemma3:layers=62,embd=5376,heads=32,kv_heads=16,head_dim=128,ff=21504,vocab=262144,ctx=131072,window=1024,tied=1",
    ),
    (
        "gpt-oss-120b",
        "gpt-oss:layers=36,embd=2880,heads=64,kv_heads=8,head_dim=64,ff=2880,experts=128,experts_used=4,vocab=201088,ctx=131072,window=128,type=mxfp4_moe",
    ),
    (
        "gpt-oss-20b",
        "gpt-oss:layers=24,embd=2880,heads=64,kv_heads=8,head_dim=64,ff=2880,experts=32,experts_used=4,vocab=201088,ctx=131072,window=128,type=mxfp4_moe",
    ),
    (
        "gpt2-xl",
        "gpt2:layers=48,embd=1600,heads=25,ff=6400,vocab=50257,ctx=1024,tied=1,type=f16",
    ),
    (
        "llama-405b",
        "llama:layers=126,embd=16384,heads=128,kv_heads=8,ff=53248,vocab=128256,ctx=131072",
    ),
    (
        "llama-70b",
        "llama:layers=80,embd=8192,heads=64,kv_heads=8,ff=28672,vocab=128256,ctx=131072",
    ),
    (
        "llama-8b",
        "llama:layers=32,embd=4096,heads=32,kv_heads=8,ff=14336,vocab=128256,ctx=131072",
    ),
    (
        "mixtral-8x7b",
        "llama:layers=32,embd=4096,heads=32,kv_heads=8,ff=14336,experts=8,experts_used=2,vocab=32000,ctx=32768",
    ),
    (
        "olmo2-13b",
        "olmo2:layers=40,embd=5120,heads=40,ff=13824,vocab=100352,ctx=4096",
    ),
    (
        "phi-4",
        "phi3:layers=40,embd=5120,heads=40,kv_heads=10,ff=17920,vocab=100352,ctx=16384",
    ),
    (
        "qwen2.5-72b",
        "qwen2:layers=80,embd=8192,heads=64,kv_heads=8,ff=29568,vocab=152064,ctx=32768",
    ),
    (
        "qwen2.5-7b",
        "qwen2:layers=28,embd=3584,heads=28,kv_heads=4,ff=18944,vocab=152064,ctx=32768",
    ),
    (
        "qwen3-235b-a22b",
        "qwen3moe:layers=94,embd=4096,heads=64,kv_heads=4,head_dim=128,ff=1536,experts=128,experts_used=8,vocab=151936,ctx=40960",
    ),
    (
        "qwen3-30b-a3b",
        "qwen3moe:layers=48,embd=2048,heads=32,kv_heads=4,head_dim=128,ff=768,experts=128,experts_used=8,vocab=151936,ctx=40960",
    ),
    (
        "qwen3-32b",
        "qwen3:layers=64,embd=5120,heads=64,kv_heads=8,head_dim=128,ff=25600,vocab=151936,ctx=40960",
    ),
];

fn small(arch: &str) -> &'static str {
    let more = SMALL_OF.iter().find(|(name, _)| *name == arch);
    more.map_or("", |(_, more)| more)
}

/// Architectures whose files llama.cpp loads without the keys of [`SMALL_OF`], which only add variety.
const LOADS_WITHOUT: [&str; 17] = [
    "bloom",
    "cogvlm",
    "deci",
    "ernie4_5-moe",
    "gemma2",
    "gemma3",
    "gpt2",
    "grok",
    "hunyuan_vl",
    "jais",
    "mellum",
    "nanbeige",
    "olmo",
    "phi3",
    "plamo3",
    "pockettts",
    "qwen",
];

/// Sizes of a model that the specification does not give.
const LAYERS: u64 = 2;
const HEADS: u64 = 8;
const EMBD: u64 = 256;

/// Returns the number that `text` gives for a key; `None` for another key or a list.
fn number(text: &str, key: &str) -> Option<u64> {
    let pairs = text.split(',').filter_map(|p| p.split_once('='));
    let mut values = pairs
        .filter(|(k, _)| k.trim() == key)
        .map(|(_, v)| v.trim());
    values.find_map(|v| v.parse().ok())
}

/// Returns an architecture's keys that a specification may replace. Lists with a number per layer are repeated for the
/// specification's layers, with its heads and widths.
pub(super) fn defaults(arch: &str, given: &str) -> String {
    if LOADS_WITHOUT.contains(&arch) {
        return String::new();
    }
    let own = small(arch);
    let listed = number(own, "layers").unwrap_or(LAYERS);
    let layers = number(given, "layers").unwrap_or(listed);
    let heads = number(given, "heads").unwrap_or(HEADS);
    let kv_heads = number(given, "kv_heads").unwrap_or(heads);
    let width = number(given, "embd").unwrap_or(EMBD).saturating_mul(2);
    let width = number(given, "ff").unwrap_or(width);
    let pairs = own.split(',').filter_map(|p| p.split_once('='));
    let pairs = pairs.filter_map(|(key, value)| {
        // As many KV heads as heads.
        let equal = key == "kv_heads" && number(own, key) == Some(HEADS);
        if key == "type" || equal {
            return None;
        }
        let list: Vec<&str> = value.split('/').collect();
        if list.len() < 2 || list.len() as u64 != listed {
            return Some(format!("{key}={value}"));
        }
        let size = match key.rsplit('.').next() {
            Some("head_count") => Some(heads),
            Some("kv_heads" | "head_count_kv") => Some(kv_heads),
            Some("ff" | "feed_forward_length") => Some(width),
            _ => None,
        };
        let item = |n: &&str| match size {
            Some(size) if **n != *"0" => size.to_string(),
            _ => (*n).to_owned(),
        };
        let list: Vec<String> = list.iter().map(item).collect();
        Some(format!("{key}={}", repeat(key, &list, layers)))
    });
    pairs.collect::<Vec<_>>().join(",")
}

/// Repeats a list up to this many items. A metadata list of one item ends with a slash.
fn repeat(key: &str, list: &[String], items: u64) -> String {
    // Counts that no model has are refused later.
    let items = usize::try_from(items)
        .unwrap_or(usize::MAX)
        .min(MOST_LISTED);
    let all: Vec<&str> = list
        .iter()
        .map(String::as_str)
        .cycle()
        .take(items)
        .collect();
    match all[..] {
        [one] if key.contains('.') => format!("{one}/"),
        _ => all.join("/"),
    }
}

/// The maximum number of listed layers, more than a specification may have.
const MOST_LISTED: usize = 1 << 12;

/// Returns a tiny model of each architecture, then headers of models with published sizes.
pub fn presets() -> Vec<Preset> {
    let tiny = ARCHS.iter().map(|arch| Preset {
        name: format!("{}-tiny", arch.name),
        spec: format!("{}:{TINY},{}", arch.name, small(arch.name)),
    });
    let sizes = SIZES.iter().map(|(name, spec)| Preset {
        name: (*name).to_owned(),
        spec: format!("{spec},header=1"),
    });
    tiny.chain(sizes).collect()
}
