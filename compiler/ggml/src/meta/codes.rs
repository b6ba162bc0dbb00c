//! The codes of faults, in the order of [`FaultKind`](super::FaultKind), and of the search for repairs.

tpc_ir::codes! {
    pub(super) static;

    ARCHITECTURE = error(
        "TPC0700",
        "ggml-meta: architecture refused by name",
        "llama.cpp has a list of architectures whose tensors it does not split, whatever their graph.",
    )
    .example("mamba2.")
    .cure("split by layers in llama.cpp, or use tpc.");

    DEVICES = error(
        "TPC0701",
        "ggml-meta: too many devices",
        "ggml splits tensors over 16 devices at most.",
    )
    .cure("fewer devices.");

    NO_FLASH = error(
        "TPC0702",
        "ggml-meta: attention is not one op",
        "llama.cpp splits tensors with flash attention only; this graph has caches of keys and values, and no \
         FLASH_ATTN_EXT.",
    )
    .cure("build the graph with flash attention.");

    UNKNOWN = error(
        "TPC0703",
        "ggml-meta: op without a rule",
        "ggml infers the state of every tensor by the rule of its op, and aborts at an op without a rule.",
    )
    .cure("write it with ops that have a rule (see the book).");

    WHOLE = error(
        "TPC0704",
        "ggml-meta: split source of an op that needs whole ones",
        "Every device computes this op, of whole sources; one of them is split.",
    )
    .example("SSM_SCAN over split channels.")
    .cure("keep its sources whole, or write it with ops that ggml splits.");

    STATES = error(
        "TPC0705",
        "ggml-meta: indices or positions are split",
        "The indices of rows, the positions of rotations and the ids of experts must be mirrored.",
    )
    .cure("compute them from mirrored values.");

    PRODUCT = error(
        "TPC0706",
        "ggml-meta: factors of a product in states that do not fit",
        "A matrix product accepts a weight split by rows with mirrored activations, a mirrored weight with split \
         rows of activations, matching parts of the contracted axis, or matching batches.",
    )
    .example("a whole weight on activations whose rows are split.")
    .cure("the equivalent graph, where one is shown.");

    ELEMENTWISE = error(
        "TPC0707",
        "ggml-meta: operands in different states",
        "An elementwise op accepts operands in one state, or a mirrored second one that has size 1 where the \
         first is split.",
    )
    .example("a norm's weight repeated to the heads before it is multiplied.")
    .cure("the equivalent graph, where one is shown.");

    ROWS = error(
        "TPC0708",
        "ggml-meta: rows that must be whole are split",
        "Norms, sorts and sums need their rows, axis 0, on one device.",
    )
    .example("a norm over all heads of the queries.")
    .cure("norms per head; otherwise ggml cannot split the layer.");

    CONCAT = error(
        "TPC0709",
        "ggml-meta: concatenation along the split axis",
        "CONCAT and PAD cannot work along the split axis.",
    )
    .example("gate and up concatenated into one tensor.")
    .cure("the equivalent graph, where one is shown.");

    SHAPE = error(
        "TPC0710",
        "ggml-meta: shape mismatch",
        "A reshape or view merges the split axis with others, so that no axis of the result is split.",
    )
    .example("[d, heads, tokens] reshaped to [d, heads · tokens] before a product per head.")
    .cure("the equivalent graph, where one is shown: the product takes four axes.");

    SIZES = error(
        "TPC0711",
        "ggml-meta: parts do not fit",
        "The devices' parts of two sources differ, or are not integers in the result's sizes.",
    )
    .cure("numbers of heads and devices that divide each other, or other proportions.");

    BLOCKS = error(
        "TPC0712",
        "ggml-meta: a quantisation block is cut",
        "The parts of axis 0 of a quantised tensor are not whole blocks.",
    )
    .example("a cache of q8_0 with heads of 16.")
    .cure("another type, or fewer devices.");

    WRITE = error(
        "TPC0713",
        "ggml-meta: a write in another state than its cache",
        "Rows that are written to a cache must be split as the cache is, which is not by cells.",
    )
    .example("the projections of a layer on the host, its cache on the devices.")
    .cure("keep both on the devices, or both on the host.");

    ATTENTION = error(
        "TPC0714",
        "ggml-meta: operands of attention in states that do not fit",
        "FLASH_ATTN_EXT accepts queries by heads, keys and values both by heads or both mirrored, a mirrored mask \
         and sinks by heads.",
    )
    .cure("split projections and caches by heads alike.");

    HEADS = error(
        "TPC0715",
        "ggml-meta: query heads that are not a multiple of key heads",
        "A device's number of query heads is not a multiple of its number of key heads.",
    )
    .example("a cache on the host (-nkvo), which every device sees whole.")
    .cure("leave the cache on the devices.");

    RECURRENCE = error(
        "TPC0716",
        "ggml-meta: operands of a recurrence in states that do not fit",
        "Convolutions and delta rules need all their sources split by the same channels or heads.",
    )
    .cure("split by layers in llama.cpp, or use tpc.");

    SLOPES = error(
        "TPC0717",
        "ggml-meta: ALiBi slopes of local heads",
        "Each device computes the slopes of ALiBi from the indices of its own heads, as if there were no others: \
         the result is silently wrong.",
    )
    .example("bloom.")
    .cure("split by layers in llama.cpp, or use tpc.");

    MIRRORED_KEYS = error(
        "TPC0718",
        "ggml-meta: mirrored keys for split queries",
        "Keys and values are mirrored, queries split, and there is more than one head of keys: each device's \
         queries meet the wrong keys, and the result is silently wrong.",
    )
    .example("grouped queries with the cache on the host (-nkvo).")
    .cure("leave the cache on the devices.");

    ORDER = error(
        "TPC0719",
        "ggml-meta: local elements in another order",
        "A view, a gate or a repetition takes parts of what each device holds as if they were parts of the \
         whole: the result is silently wrong.",
    )
    .example("halves of a fused projection that ggml does not know to be fused.")
    .cure("separate tensors.");

    EQUIVALENT = note(
        "TPC0720",
        "ggml-meta: equivalent graph",
        "Equality saturation found an equivalent graph that ggml accepts, whose changed lines are shown; or it found \
         none. That proves nothing where the search stopped at a limit.",
    )
    .cure("build the equivalent graph.");
}
