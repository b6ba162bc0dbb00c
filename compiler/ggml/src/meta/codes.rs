//! The codes of faults, in the order of [`FaultKind`](super::FaultKind), and of the search for repairs.

tpc_ir::codes! {
    pub(super) static;

    ARCHITECTURE = error(
        "TPC0700",
        "llama.cpp does not split this architecture",
        "llama.cpp has a list of architectures whose tensors it does not split, whatever their graph.",
    )
    .example("mamba2.")
    .cure("use `-sm layer` in llama.cpp, or use tpc.");

    DEVICES = error(
        "TPC0701",
        "too many devices for ggml",
        "ggml splits tensors over at most 16 devices.",
    )
    .cure("use fewer devices.");

    NO_FLASH = error(
        "TPC0702",
        "llama.cpp needs attention as one op",
        "llama.cpp splits tensors with flash attention only. This graph has KV caches without FLASH_ATTN_EXT.",
    )
    .cure("build the graph with flash attention.");

    UNKNOWN = error(
        "TPC0703",
        "ggml lacks a split rule for the op",
        "ggml derives the split of every tensor from the rule of its op, and aborts at an op without a rule.",
    )
    .cure("use ops that have a rule (see the book).");

    WHOLE = error(
        "TPC0704",
        "ggml needs whole sources for the op",
        "Every device computes this op from whole sources, and one source is split.",
    )
    .example("SSM_SCAN over split channels.")
    .cure("keep the sources whole, or use ops that ggml splits.");

    STATES = error(
        "TPC0705",
        "indices or positions are split",
        "ggml needs row indices, rotary positions and expert ids mirrored on every device.",
    )
    .cure("compute them from mirrored values.");

    PRODUCT = error(
        "TPC0706",
        "ggml cannot multiply factors with these splits",
        "A matrix product accepts a row-split weight with mirrored activations, a mirrored weight with split rows of \
         activations, matching parts of the contracted axis, or matching batches.",
    )
    .example("a mirrored weight on activations that are split along the contracted axis.")
    .cure("build the equivalent graph, if one is shown.");

    ELEMENTWISE = error(
        "TPC0707",
        "elementwise operands are split differently",
        "An elementwise op accepts equally split operands, or a mirrored second operand of size 1 along the split \
         axis.",
    )
    .example("a norm's weight repeated to the heads before the multiplication.")
    .cure("build the equivalent graph, if one is shown.");

    ROWS = error(
        "TPC0708",
        "rows that ggml needs whole are split",
        "Norms, sorts and sums need their rows (axis 0) on one device.",
    )
    .example("a norm over all query heads.")
    .cure("use norms per head; otherwise ggml cannot split the layer.");

    CONCAT = error(
        "TPC0709",
        "concatenation along the split axis",
        "ggml's CONCAT and PAD cannot work along the split axis.",
    )
    .example("gate and up concatenated into one tensor.")
    .cure("build the equivalent graph, if one is shown.");

    SHAPE = error(
        "TPC0710",
        "reshape or view loses the split axis",
        "A reshape or view merges the split axis with others, so the result cannot be split.",
    )
    .example("[d, heads, tokens] reshaped to [d, heads · tokens] before a product per head.")
    .cure("build the equivalent graph, if one is shown: the product takes four axes.");

    SIZES = error(
        "TPC0711",
        "parts of the devices do not fit",
        "Two sources have different parts per device, or a part of the result would not be an integer.",
    )
    .cure("use numbers of heads and devices that divide each other, or other proportions.");

    BLOCKS = error(
        "TPC0712",
        "split cuts a quantisation block",
        "A device's part of axis 0 is not a whole number of blocks.",
    )
    .example("a q8_0 cache with heads of 16.")
    .cure("use another type, or fewer devices.");

    WRITE = error(
        "TPC0713",
        "cache write split differently from its cache",
        "Rows written to a cache must be split like the cache, and not by cells.",
    )
    .example("a layer's projections on the host, its cache on the devices.")
    .cure("keep both on the devices, or both on the host.");

    ATTENTION = error(
        "TPC0714",
        "attention operands are split differently",
        "FLASH_ATTN_EXT accepts queries and sinks split by heads, a mirrored mask, and keys and values both split by \
         heads or both mirrored.",
    )
    .cure("split projections and caches by the same heads.");

    HEADS = error(
        "TPC0715",
        "query heads are not a multiple of key heads",
        "On one device, the number of query heads is not a multiple of the number of key heads.",
    )
    .example("a cache on the host (-nkvo), which every device sees whole.")
    .cure("leave the cache on the devices.");

    RECURRENCE = error(
        "TPC0716",
        "operands of a recurrence are split differently",
        "Convolutions and delta rules need all sources split by the same channels or heads.",
    )
    .cure("use `-sm layer` in llama.cpp, or use tpc.");

    SLOPES = error(
        "TPC0717",
        "ALiBi slopes of local heads",
        "Each device computes ALiBi slopes from the indices of its own heads, as if no others existed. The result is \
         silently wrong.",
    )
    .example("bloom.")
    .cure("use `-sm layer` in llama.cpp, or use tpc.");

    MIRRORED_KEYS = error(
        "TPC0718",
        "mirrored keys for split queries",
        "Queries are split, keys and values mirrored, and there are several key heads. Each device's queries meet \
         the wrong keys, and the result is silently wrong.",
    )
    .example("grouped queries with the cache on the host (-nkvo).")
    .cure("leave the cache on the devices.");

    ORDER = error(
        "TPC0719",
        "local elements in another order",
        "A view, gate or repetition takes parts of each device's elements as parts of the whole tensor. The result \
         is silently wrong.",
    )
    .example("halves of a fused projection that ggml does not recognise as fused.")
    .cure("use separate tensors.");

    EQUIVALENT = note(
        "TPC0720",
        "equivalent graph for llama.cpp",
        "tpc searched for an equivalent graph that ggml accepts, by equality saturation. The message shows the \
         changed lines, or says that the search found no graph. A search that stopped at a limit proves neither.",
    )
    .cure("build the equivalent graph.");
}
