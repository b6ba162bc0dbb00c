//! The codes of faults, in the order of [`FaultKind`](super::FaultKind), and of the search for repairs.

tpc_ir::codes! {
    pub(super) static;

    ARCHITECTURE = error(
        "TPC0700",
        "llama.cpp does not split this architecture",
        "llama.cpp refuses `-sm tensor` for some architectures, for any graph.",
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
        "llama.cpp splits tensors with flash attention only.",
    )
    .cure("build the graph with flash attention.");

    UNKNOWN = error(
        "TPC0703",
        "ggml lacks a split rule for the op",
        "ggml aborts at an op without a split rule.",
    )
    .cure("use ops that have a rule (see the book).");

    WHOLE = error(
        "TPC0704",
        "ggml needs whole sources for the op",
        "Every device computes this op whole, but a source is split.",
    )
    .example("SSM_SCAN over split channels.")
    .cure("keep the sources whole, or use ops that ggml splits.");

    STATES = error(
        "TPC0705",
        "indices or positions are split",
        "Row indices, rotary positions and expert ids must be whole on every device; this graph splits them.",
    )
    .cure("compute them from values that are whole on every device.");

    PRODUCT = error(
        "TPC0706",
        "ggml cannot multiply these splits",
        "A product accepts a row-split weight, split rows of activations, matching parts of the contracted axis, or \
         matching batches.",
    )
    .example("a mirrored weight on activations that are split along the contracted axis.")
    .cure("change the graph as TPC0720 shows, if tpc found an equivalent.");

    ELEMENTWISE = error(
        "TPC0707",
        "elementwise operands are split differently",
        "Operands need equal splits, or a mirrored second operand of size 1 along the split axis.",
    )
    .example("a norm's weight repeated to the heads.")
    .cure("change the graph as TPC0720 shows, if tpc found an equivalent.");

    ROWS = error(
        "TPC0708",
        "rows that ggml needs whole are split",
        "Norms, sorts and sums need whole rows on one device.",
    )
    .example("a norm over all query heads.")
    .cure("use norms per head; otherwise ggml cannot split the layer.");

    CONCAT = error(
        "TPC0709",
        "concatenation along the split axis",
        "CONCAT and PAD do not work along the split axis.",
    )
    .example("gate and up concatenated into one tensor.")
    .cure("change the graph as TPC0720 shows, if tpc found an equivalent.");

    SHAPE = error(
        "TPC0710",
        "reshape or view loses the split axis",
        "The op merges the split axis with others.",
    )
    .example("[d, heads, tokens] reshaped to [d, heads · tokens].")
    .cure("change the graph as TPC0720 shows, if tpc found an equivalent: a product accepts four axes.");

    SIZES = error(
        "TPC0711",
        "device parts do not match",
        "Sources have different parts, or a part of the result is not an integer.",
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
        "Rows must be split like their cache, and not by cells.",
    )
    .example("projections on the host, the cache on the devices.")
    .cure("keep both on the devices, or both on the host.");

    ATTENTION = error(
        "TPC0714",
        "attention operands are split differently",
        "FLASH_ATTN_EXT accepts queries and sinks split by heads, and a whole mask. Keys and values are both split by \
         heads, or both whole.",
    )
    .cure("split projections and caches by the same heads, or use `-sm layer`.");

    HEADS = error(
        "TPC0715",
        "query heads are not a multiple of key heads",
        "A device's query heads are not a multiple of its key heads.",
    )
    .example("a cache on the host (-nkvo).")
    .cure("leave the cache on the devices.");

    RECURRENCE = error(
        "TPC0716",
        "operands of a recurrence are split differently",
        "All sources must be split by the same channels or heads.",
    )
    .cure("use `-sm layer` in llama.cpp, or use tpc.");

    SLOPES = error(
        "TPC0717",
        "ALiBi slopes of local heads",
        "Each device computes slopes as if its own heads were all. Results are silently wrong.",
    )
    .example("bloom.")
    .cure("use `-sm layer` in llama.cpp, or use tpc.");

    MIRRORED_KEYS = error(
        "TPC0718",
        "mirrored keys for split queries",
        "Each device's queries meet the wrong keys. Results are silently wrong.",
    )
    .example("grouped queries and a cache on the host (-nkvo).")
    .cure("leave the cache on the devices.");

    ORDER = error(
        "TPC0719",
        "local elements in another order",
        "The op takes a device's parts as parts of the whole tensor. Results are silently wrong.",
    )
    .example("halves of a projection that ggml does not recognise as fused.")
    .cure("use separate tensors.");

    EQUIVALENT = note(
        "TPC0720",
        "equivalent graph for llama.cpp",
        "tpc searched for a graph that ggml accepts (equality saturation). A search that stopped at a limit proves \
         little.",
    )
    .cure("change the graph as TPC0720 shows, if tpc found an equivalent.");
}
