//! Codes for the limits of llama.cpp's tensor split, for lints and for plans that omit the llama.cpp command.

use tpc_ir::Code;

/// An architecture that llama.cpp refuses to split.
pub const REFUSED_BY_NAME: Code = Code::error(
    "TPC0900",
    "llama.cpp does not split this architecture",
    "llama.cpp refuses `-sm tensor` for this architecture and does not load the model. tpc splits it.",
)
.example("`llama-server -m olmo2.gguf -sm tensor`.")
.cure("use `-sm layer`, or the `tpc` command in the help.");

/// A KV cache on the host.
pub const CACHES_ON_HOST: Code = Code::error(
    "TPC0901",
    "llama.cpp's tensor split with a KV cache on the host",
    "llama.cpp treats host tensors as identical on every device, but a KV cache must be split by heads. llama.cpp \
     0.8.0 aborts, or computes silently wrong output if keys have no RoPE. The output is right only if one device has \
     all heads. tpc copies to each device the heads that it needs.",
)
.example("`-sm tensor -nkvo`.")
.cure("leave out `-nkvo` with llama.cpp (a smaller `-c`, or `-ctk q8_0 -ctv q8_0`, saves memory), or use the \
       `tpc` command in the help.");

/// ALiBi slopes.
pub const SLOPES: Code = Code::error(
    "TPC0902",
    "llama.cpp's tensor split with ALiBi",
    "ALiBi has a slope per head. llama.cpp numbers the heads of each device from 0, so all devices but the first use \
     wrong slopes, without a message. tpc numbers the heads of the whole model.",
)
.example("a BLOOM model on two devices.")
.cure("use `-sm layer`, or the `tpc` command in the help.");

/// Attention weights on the host.
pub const ATTENTION_ON_HOST: Code = Code::error(
    "TPC0903",
    "llama.cpp's tensor split with attention weights on the host",
    "An `-ot` puts attention weights on the host, but `-sm tensor` splits the layer's caches by heads. llama.cpp \
     aborts. Norms of the residual stream and output biases may be on the host. tpc computes such a layer's attention \
     on the host, or copies the weights.",
)
.example("`-sm tensor -ot 'blk\\.0\\.attn.*=CPU'`.")
.cure("keep attention on the devices with llama.cpp, or use the `tpc` command in the help.");

/// More devices than llama.cpp supports in a tensor split.
pub const MANY_DEVICES: Code = Code::error(
    "TPC0907",
    "too many devices for llama.cpp's tensor split",
    "llama.cpp's tensor split supports at most 16 devices.",
)
.example("`-sm tensor` with 17 entries in `-ts`.")
.cure("use at most 16 devices with llama.cpp; tpc plans up to 64.");

/// A model whose tensor split failed in a test run.
pub const MEASURED_FAILURE: Code = Code::error(
    "TPC0915",
    "llama.cpp's tensor split fails for this model",
    "A small model of this architecture failed with `-sm tensor` and these options in this release of llama.cpp: it \
     aborted, or its logits were wrong. tpc gets the same logits as on one device.",
)
.example("Qwen 3.5 on two devices with llama.cpp 0.5.0.")
.cure("use `-sm layer`, or the `tpc` command in the help.");

/// One KV head with normalised keys.
pub const ONE_NORMED_KV_HEAD: Code = Code::error(
    "TPC0921",
    "llama.cpp's tensor split with one normalised KV head",
    "llama.cpp 0.8.0 aborts at the first generated token if attention has one KV head and normalises keys or values \
     per head: llama.cpp treats the token's single row as split. Prompts pass. One device aborts, too.",
)
.example("Gemma 3 270M or 1B with `-sm tensor`.")
.cure("use `-sm layer` or `-sm none` with llama.cpp, or the `tpc` command in the help.");

/// Split rows of one quantisation block.
pub const ROWS_OF_ONE_BLOCK: Code = Code::error(
    "TPC0922",
    "llama.cpp's tensor split with rows of one block",
    "llama.cpp splits the rows of `attn_output`, `ffn_down` and `ssm_out` at quantisation blocks. A row of one block \
     goes to one device, and llama.cpp 0.8.0 aborts while it writes the empty parts of the others.",
)
.example("experts of 256 columns in Q4_K.")
.cure("use a type with smaller blocks (q8_0, q4_0), `-sm layer`, or the `tpc` command in the help.");

/// Linear attention whose key heads and value heads llama.cpp splits differently.
pub const UNEVEN_LINEAR_HEADS: Code = Code::error(
    "TPC0923",
    "llama.cpp splits linear attention's heads inconsistently",
    "llama.cpp rounds the key heads and the value heads of linear attention independently. On these devices they do \
     not match, and llama.cpp 0.8.0 aborts.",
)
.example("Qwen3-Next (16 key heads, 32 value heads) on 3 or 5 devices.")
.cure("use a number of devices that divides the key heads, `-sm layer`, or the `tpc` \
       command in the help.");

/// Fewer KV heads than devices.
pub const FEW_KV_HEADS: Code = Code::error(
    "TPC0926",
    "fewer KV heads than devices in an old llama.cpp",
    "llama.cpp up to 0.5.0 computes NaN with `-sm tensor` if a layer has fewer KV heads than devices. 0.8.0 is right: \
     devices without a head add zero.",
)
.example("a model with 2 KV heads on 3 devices, with `--engine llama.cpp@0.5.0`.")
.cure("use fewer devices, a newer llama.cpp, or the `tpc` command in the help.");

/// Norms per head that are split differently from the heads.
pub const UNEVEN_HEAD_ROWS: Code = Code::error(
    "TPC0927",
    "llama.cpp splits head norms differently from the heads",
    "llama.cpp splits a query or key norm with a row per head at single heads, but the heads at groups and \
     quantisation blocks. If the parts differ, llama.cpp 0.8.0 aborts when it creates the context.",
)
.example("Talkie with 2 KV heads on 3 devices.")
.cure("use a number of devices that divides the KV heads, `-sm layer`, or the `tpc` \
       command in the help.");

/// Embeddings that are read from a split output matrix.
pub const EMBEDDINGS_OF_OUTPUT: Code = Code::error(
    "TPC0928",
    "embeddings are read from the split output matrix",
    "The file lacks `token_embd.weight`, so llama.cpp reads embeddings from `output.weight`. `-sm tensor` splits that \
     matrix, and llama.cpp 0.8.0 aborts when it creates the context.",
)
.example("a CodeShell file with only `output.weight`.")
.cure("use a file with `token_embd.weight`, `-sm layer`, or the `tpc` command in the help.");

/// Devices of two back ends.
pub const MIXED_BACKENDS: Code = Code::error(
    "TPC0924",
    "llama.cpp's tensor split with two back ends",
    "The devices of `-sm tensor` have two back ends, such as CUDA and ROCm. llama.cpp aborts when it creates the \
     context.",
)
.example("`-dev CUDA0,ROCm0 -sm tensor`.")
.cure("use `-sm layer`, or Vulkan for all cards: `-dev Vulkan0,Vulkan1` (for a plan, `--backend Vulkan`).");

/// A split mode that the release has dropped.
pub const DROPPED_MODE: Code = Code::error(
    "TPC0925",
    "this llama.cpp release has dropped the split mode",
    "The release does not load a model with this split mode. llama.cpp dropped `-sm row` with build 9890 (July 2026): \
     its back ends do not support split buffers.",
)
.example("`-sm row` with llama.cpp 0.8.0.")
.cure("use `-sm tensor` if llama.cpp supports it for the model, else `-sm layer`.");

/// An architecture that is not in the engine's list.
pub const NOT_LISTED: Code = Code::warning(
    "TPC0929",
    "ik_llama.cpp does not split this architecture by tensors",
    "`-sm graph` splits the tensors of listed architectures. ik_llama.cpp splits others by layers.",
)
.example("`-sm graph` with a DeepSeek model.")
.cure("use `-sm layer`.");

/// A feed-forward layer with matrices on the host and on the devices.
pub const FEED_FORWARD_TORN: Code = Code::error(
    "TPC0934",
    "llama.cpp's tensor split with a divided feed-forward layer",
    "An `-ot` puts a feed-forward matrix on the host and leaves another on the devices. The product of the first is \
     whole, but the second expects a part: llama.cpp 0.8.0 aborts. `ffn_down` may be on the host alone, with `ffn_up`, \
     or with the whole layer.",
)
.example("`-sm tensor -ot 'ffn_(up|gate)_exps=CPU'`.")
.cure("put the whole layer on the host (`-ot 'ffn_.*_exps=CPU'`), or only `ffn_down`; or use the `tpc` command \
       in the help.");

/// A bias on the host whose split matrix is on the devices.
pub const OUTPUT_BIAS_ON_HOST: Code = Code::error(
    "TPC0935",
    "llama.cpp's tensor split with an output bias on the host",
    "An `-ot` puts the bias of `attn_output` or `ffn_down` on the host, but not the matrix. The host then gets \
     unfinished sums: llama.cpp 0.8.0 aborts.",
)
.example("`-sm tensor -ot 'ffn_down.bias=CPU'` with StarCoder.")
.cure("put the bias and its matrix together on the devices or the host.");
