//! Codes for the limits of llama.cpp's tensor split. The lints of command lines report them. Plans name them as the
//! reason for omitting a llama.cpp command.

use tpc_ir::Code;

/// An architecture that it does not split.
pub const REFUSED_BY_NAME: Code = Code::error(
    "TPC0900",
    "an architecture that llama.cpp does not split",
    "The command asks for `-sm tensor`, which llama.cpp refuses for this architecture by name: it does not \
     load the model. tpc splits it.",
)
.example("`llama-server -m olmo2.gguf -sm tensor`.")
.cure("`-sm layer` with llama.cpp, or the `tpc` command in the help.");

/// A KV cache on the host.
pub const CACHES_ON_HOST: Code = Code::error(
    "TPC0901",
    "a KV cache on the host under llama.cpp's tensor split",
    "With `-sm tensor`, llama.cpp treats tensors on the host as identical on every device, but a KV cache on \
     the host would have to be split by heads. llama.cpp 0.8.0 aborts, or, if keys have no RoPE, computes silently wrong \
     output. It is right only if one device has all heads, or the model has no cache. tpc copies to each device the heads \
     that it needs.",
)
.example("`-sm tensor -nkvo`.")
.cure("leave out `-nkvo` with llama.cpp (a smaller `-c`, or `-ctk q8_0 -ctv q8_0`, saves memory), or use the \
       `tpc` command in the help.");

/// ALiBi slopes.
pub const SLOPES: Code = Code::error(
    "TPC0902",
    "ALiBi under llama.cpp's tensor split",
    "ALiBi subtracts from each logit the distance times a slope, and every head has a slope of its own. \
     Under `-sm tensor` llama.cpp numbers the heads of each device from 0, so all devices but the first use \
     wrong slopes, and nothing reports it. tpc gives each device the numbers of its heads.",
)
.example("a BLOOM model on two devices.")
.cure("`-sm layer` with llama.cpp, or the `tpc` command in the help.");

/// Weights of attention on the host.
pub const ATTENTION_ON_HOST: Code = Code::error(
    "TPC0903",
    "attention weights on the host under llama.cpp's tensor split",
    "An `-ot` puts attention weights on the host, while `-sm tensor` splits the caches of the same layer by \
     heads. llama.cpp aborts. Norms of the residual stream and biases of the output may be on the host. tpc computes the \
     attention of such a layer where its weights are, or copies what it needs.",
)
.example("`-sm tensor -ot 'blk\\.0\\.attn.*=CPU'`.")
.cure("keep attention on the devices with llama.cpp, or use the `tpc` command in the help.");

/// More devices than it splits tensors among.
pub const MANY_DEVICES: Code = Code::error(
    "TPC0907",
    "more devices than llama.cpp splits tensors among",
    "llama.cpp's tensor split takes at most 16 devices.",
)
.example("`-sm tensor` with 17 entries in `-ts`.")
.cure("at most 16 devices with llama.cpp; tpc plans up to 64.");

/// A model whose tensor split fails, as measured.
pub const MEASURED_FAILURE: Code = Code::error(
    "TPC0915",
    "a model whose tensor split fails in llama.cpp",
    "This release of llama.cpp ran a small model of this architecture with `-sm tensor` and such options: it aborted, \
     or its logits were wrong, although it does not refuse the architecture. tpc's logits equal those of one \
     device.",
)
.example("Qwen 3.5 on two devices with llama.cpp 0.5.0.")
.cure("`-sm layer` with llama.cpp, or the `tpc` command in the help.");

/// One KV head whose keys are normalised.
pub const ONE_NORMED_KV_HEAD: Code = Code::error(
    "TPC0921",
    "one normalised KV head under llama.cpp's tensor split",
    "Under `-sm tensor`, llama.cpp 0.8.0 aborts at the first generated token if attention has one KV head and keys or values \
     are normalised head by head. A single token's keys are then one row, and llama.cpp takes the row for split. Prompts \
     pass, so a test of prompts alone does not show it. One device aborts, too.",
)
.example("Gemma 3 270M or 1B with `-sm tensor`.")
.cure("`-sm layer` or `-sm none` with llama.cpp, or the `tpc` command in the help.");

/// Rows of one quantisation block along a split.
pub const ROWS_OF_ONE_BLOCK: Code = Code::error(
    "TPC0922",
    "rows of one quantisation block under llama.cpp's tensor split",
    "Under `-sm tensor`, llama.cpp splits the rows of `attn_output`, `ffn_down` and `ssm_out` at quantisation blocks. A row \
     that is a single block goes to one device, and llama.cpp 0.8.0 aborts while it writes the others' empty parts.",
)
.example("experts of 256 columns in Q4_K.")
.cure("a type with smaller blocks for these tensors (q8_0, q4_0), or `-sm layer` with llama.cpp, or the `tpc` command in \
       the help.");

/// Linear attention whose key heads and value heads llama.cpp divides differently among the devices.
pub const UNEVEN_LINEAR_HEADS: Code = Code::error(
    "TPC0923",
    "linear attention whose heads llama.cpp does not share alike",
    "Under `-sm tensor`, llama.cpp rounds the key heads and the value heads of this architecture's linear attention on their \
     own. On these devices a device's value heads are then not those of its key heads, and llama.cpp 0.8.0 aborts.",
)
.example("Qwen3-Next (16 key heads, 32 value heads) on 3 or 5 devices.")
.cure("a number of devices that divides the key heads, `-sm layer` with llama.cpp, or the `tpc` command in the help.");

/// Fewer KV heads than devices.
pub const FEW_KV_HEADS: Code = Code::error(
    "TPC0926",
    "fewer KV heads than devices in an old llama.cpp",
    "Up to 0.5.0, llama.cpp's `-sm tensor` computes NaN if a layer has fewer KV heads than there are devices. 0.8.0 is right: \
     devices without a head add zero.",
)
.example("a model with 2 KV heads on 3 devices, with `--engine llama.cpp@0.5.0`.")
.cure("fewer devices, a newer llama.cpp, or the `tpc` command in the help.");

/// Norms with a row per head that are split differently from the heads.
pub const UNEVEN_HEAD_ROWS: Code = Code::error(
    "TPC0927",
    "norms per head that llama.cpp does not share as the heads",
    "Under `-sm tensor`, llama.cpp splits a norm of queries or keys with a row per head at single heads, but the heads at \
     groups and quantisation blocks. If the parts differ, llama.cpp 0.8.0 aborts when it creates the context.",
)
.example("Talkie with 2 KV heads on 3 devices.")
.cure("a number of devices that divides the KV heads, `-sm layer` with llama.cpp, or the `tpc` command in the help.");

/// Embeddings that are read from a split output matrix.
pub const EMBEDDINGS_OF_OUTPUT: Code = Code::error(
    "TPC0928",
    "embeddings read from the split output matrix",
    "The file has no `token_embd.weight`, so llama.cpp reads the embeddings of tokens from `output.weight`. Under \
     `-sm tensor` that matrix is split, and llama.cpp 0.8.0 aborts when it creates the context.",
)
.example("a CodeShell file with `output.weight` alone.")
.cure("a file with `token_embd.weight`, `-sm layer` with llama.cpp, or the `tpc` command in the help.");

/// Devices of two back ends.
pub const MIXED_BACKENDS: Code = Code::error(
    "TPC0924",
    "devices of two back ends under llama.cpp's tensor split",
    "The devices of `-sm tensor` are of two of ggml's back ends, such as CUDA and ROCm. llama.cpp aborts when it creates the \
     context. One back end has to drive all of them.",
)
.example("`-dev CUDA0,ROCm0 -sm tensor`.")
.cure("`-sm layer`, or Vulkan for all cards: `-dev Vulkan0,Vulkan1` (for a plan, `--backend Vulkan`).");

/// A split mode that the release has dropped.
pub const DROPPED_MODE: Code = Code::error(
    "TPC0925",
    "a split mode that this release of llama.cpp has no longer",
    "The release does not load a model with this split mode. llama.cpp dropped `-sm row` with build 9890 (July 2026): its \
     back ends do not support split buffers.",
)
.example("`-sm row` with llama.cpp 0.8.0.")
.cure("`-sm tensor` where it serves the model, else `-sm layer`.");

/// An architecture that an engine's list does not have.
pub const NOT_LISTED: Code = Code::warning(
    "TPC0929",
    "an architecture that ik_llama.cpp does not split by tensors",
    "ik_llama.cpp splits tensors (`-sm graph`) of the architectures that its loader lists. Others it splits by layers.",
)
.example("`-sm graph` with a DeepSeek model.")
.cure("`-sm layer`.");

/// A part of a feed-forward layer on the host.
pub const FEED_FORWARD_TORN: Code = Code::error(
    "TPC0934",
    "a part of a feed-forward layer on the host under llama.cpp's tensor split",
    "An `-ot` puts a matrix of a feed-forward layer on the host and leaves another on the devices. Under `-sm tensor` the \
     product of the one is whole and the other expects a part of it: llama.cpp 0.8.0 aborts. `ffn_down` alone may be on the \
     host, also with `ffn_up`; all three together may.",
)
.example("`-sm tensor -ot 'ffn_(up|gate)_exps=CPU'`.")
.cure("the whole layer on the host (`-ot 'ffn_.*_exps=CPU'`), or `ffn_down` alone; or the `tpc` command in the help.");

/// A bias on the host that belongs to a matrix split among devices.
pub const OUTPUT_BIAS_ON_HOST: Code = Code::error(
    "TPC0935",
    "the bias behind a split sum on the host under llama.cpp's tensor split",
    "An `-ot` puts the bias of `attn_output` or `ffn_down` on the host and leaves the matrix on the devices. Under \
     `-sm tensor` the host then gets sums that no device has finished: llama.cpp 0.8.0 aborts.",
)
.example("`-sm tensor -ot 'ffn_down.bias=CPU'` with StarCoder.")
.cure("the bias with its matrix, on the devices or on the host.");
