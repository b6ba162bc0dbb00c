//! The codes of captures: defects, and notes on graphs that are read.

tpc_ir::codes! {
    pub(super) static;

    RECORD = error(
        "TPC0180",
        "not a record of a capture",
        "A line is not a JSON object with the keys of a capture.",
    )
    .example("a file cut in the middle of a line.")
    .cure("capture the graph again.");

    ELEMENT_TYPE = error(
        "TPC0181",
        "unknown element type in a capture",
        "`type` is not the name of a ggml type.",
    )
    .example("`\"type\":\"float\"`.")
    .cure("write `f32`.");

    SIZES = error(
        "TPC0182",
        "impossible sizes in a capture",
        "A size is negative, a row is not a whole number of quantisation blocks, or a tensor is larger than any \
         memory.",
    )
    .example("a q4_K tensor with `\"ne\":[100,…]`.")
    .cure("capture the graph again.");

    REFERENCE = error(
        "TPC0183",
        "bad reference in a capture",
        "An id occurs twice, or `src` or `view` names a tensor that no line before defines.",
    )
    .example("tensors in another order than that of computation.")
    .cure("write each tensor before its first use.");

    OUTSIDE_VIEW = error(
        "TPC0184",
        "view outside of its tensor",
        "The strides and the offset of a view reach beyond the tensor that it looks into.",
    )
    .example("`view_offs` counted in elements.")
    .cure("give bytes from the start of the tensor that owns the memory.");

    STRIDES = error(
        "TPC0185",
        "strides of a tensor that is not a view",
        "A tensor that owns its memory is packed: every stride is the one below times the size below.",
    )
    .example("a permuted tensor with `\"view\":-1`.")
    .cure("name the tensor that it looks into.");

    EMPTY = error(
        "TPC0186",
        "capture without computation",
        "Every record is a leaf.",
    )
    .example("an empty file.")
    .cure("capture the graph that is computed.");

    INCONSISTENT = error(
        "TPC0187",
        "inconsistent capture",
        "The graph that was read breaks an invariant of the IR: a fault of tpc.",
    )
    .cure("report it with the capture.");

    SOURCES = error(
        "TPC0188",
        "too few sources in a capture",
        "A record has fewer sources than every record of its op has, or leaves one out that is not optional.",
    )
    .example("a MUL_MAT with one source.")
    .cure("write all sources of the tensor, in ggml's order.");

    LOST = error(
        "TPC0189",
        "part of a capture is lost",
        "The graph that was read from the capture was compared with the records, and does not say something that a \
         record says: an operand, a parameter, an element type, or the place of an element in memory. Nothing is \
         planned: a fault of tpc.",
    )
    .example("a parameter that two ops without a rule differ in.")
    .cure("report it with the capture.");

    WHOLE_OP = note(
        "TPC0190",
        "op without a rule",
        "The capture has an op of ggml without a sharding rule. Its operands and its result stay whole on every device; TPC0305 says which weights that concerns.",
    )
    .example("RWKV_WKV6.")
    .cure("none is needed for a sound plan; to split it, add the op to the IR (see the book).");

    UNKNOWN_FORM = note(
        "TPC0191",
        "op in a form without a rule",
        "The IR knows the op, but not with these operands or parameters. Its operands and its result stay \
         whole on every device.",
    )
    .example("ROPE for images (mode 24).")
    .cure("none is needed for a sound plan.");

    NO_BOX = note(
        "TPC0192",
        "view that is not a box",
        "The elements of a view are not a range of indices per factor of its tensor: they overlap, or run across \
         its rows. The tensor stays whole on every device.",
    )
    .example("a sliding window as a view with overlapping rows.")
    .cure("copy the rows (CONT), or use an op that says what is meant.");

    FIXED_BATCH = note(
        "TPC0193",
        "batch sizes of the capture are kept",
        "Some sizes of the batch (tokens, cells of the cache, outputs) could not be told from sizes of the \
         model, so they stay the numbers of the capture and the plan is priced for that batch only. It is sound \
         all the same.",
    )
    .cure("capture with sizes of the batch that no dimension of the model has.");

    UNKNOWN_OP = warning(
        "TPC0194",
        "op that ggml does not have",
        "ggml has no op of the name that the capture gives. It is planned around: its operands and its result \
         stay whole on every device.",
    )
    .example("an op of a fork, or of a newer ggml.")
    .cure("check the name; a new op is a line in the table of `ggml::op` (see the book).");
}
