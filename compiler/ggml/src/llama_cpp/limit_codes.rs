//! The codes of what llama.cpp's tensor split does not serve. The lints of command lines report them; plans name them where
//! they say why a command of llama.cpp is not offered.

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
     the host would have to be split by heads. Depending on the architecture, llama.cpp aborts or silently \
     computes wrong logits. tpc copies to each device the heads that it needs.",
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
     heads. llama.cpp aborts; it did so with every architecture that was measured. tpc computes the \
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
    "llama.cpp 0.5.0 ran a small model of this architecture with `-sm tensor` and such options: it aborted, \
     or its logits were wrong, although it does not refuse the architecture. tpc's logits equal those of one \
     device.",
)
.example("Qwen 3.5 on two devices; LFM 2 on three.")
.cure("`-sm layer` with llama.cpp, or the `tpc` command in the help.");
