//! The codes of captures: errors, and notes.

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
        "A size is negative, a row has partial blocks, or a tensor exceeds any memory.",
    )
    .example("a q4_K tensor with `\"ne\":[100,…]`.")
    .cure("capture the graph again.");

    REFERENCE = error(
        "TPC0183",
        "invalid reference in a capture",
        "An id occurs twice, or `src` or `view` names an undefined tensor.",
    )
    .cure("write each tensor before its first use.");

    OUTSIDE_VIEW = error(
        "TPC0184",
        "view outside its tensor",
        "The view reaches beyond its tensor.",
    )
    .example("`view_offs` counted in elements.")
    .cure("give bytes from the start of the owner's memory.");

    STRIDES = error(
        "TPC0185",
        "strides of a tensor that is not a view",
        "A tensor that owns its memory must be packed: a stride is the stride below times the size below.",
    )
    .example("a permuted tensor with `\"view\":-1`.")
    .cure("name the viewed tensor.");

    EMPTY = error(
        "TPC0186",
        "capture without computation",
        "Every record is a leaf.",
    )
    .example("an empty file.")
    .cure("capture a graph that is computed.");

    INCONSISTENT = error(
        "TPC0187",
        "inconsistent capture",
        "tpc built a graph that breaks an invariant of the IR.",
    )
    .cure("report this bug in tpc with the capture.");

    SOURCES = error(
        "TPC0188",
        "too few sources in a capture",
        "A record lacks a source that its op requires.",
    )
    .example("a MUL_MAT with one source.")
    .cure("write all sources, in ggml's order.");

    LOST = error(
        "TPC0189",
        "part of a capture is lost",
        "tpc's graph lacks an operand, parameter, element type or memory location of a record, so tpc stops.",
    )
    .cure("report this bug in tpc with the capture.");

    WHOLE_OP = note(
        "TPC0190",
        "op without a sharding rule",
        "The op's operands and result stay whole on every device. TPC0305 lists the affected weights.",
    )
    .example("RWKV_WKV6.")
    .cure("no action is needed; to split the op, add it to the IR (see the book).");

    UNKNOWN_FORM = note(
        "TPC0191",
        "op in a form without a sharding rule",
        "tpc lacks a rule for these operands or parameters. Operands and result stay whole on every device.",
    )
    .example("ROPE for images (mode 24).")
    .cure("no action is needed.");

    NO_BOX = note(
        "TPC0192",
        "view that is not one range per factor",
        "The view's elements overlap or run across rows, so its tensor stays whole on every device.",
    )
    .example("a sliding window as a view with overlapping rows.")
    .cure("copy the rows (CONT), or use an op for this purpose.");

    FIXED_BATCH = note(
        "TPC0193",
        "batch sizes of the capture are kept",
        "Some batch sizes are equal to sizes of the model, so tpc could not tell them apart. Times of the plan hold \
         for the captured batch only.",
    )
    .cure("capture with batch sizes that the model's dimensions do not have.");

    UNKNOWN_OP = warning(
        "TPC0194",
        "op that ggml does not have",
        "The op's operands and result stay whole on every device.",
    )
    .example("an op of a fork, or of a newer ggml.")
    .cure("check the name; add a new op to `ggml::op` (see the book).");
}
