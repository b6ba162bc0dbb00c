//! The catalogue of what can be wrong with a capture, and of what is worth knowing about one.

use tpc_ir::CodeDoc;

/// An op of ggml that the IR has no rule for.
pub(super) const WHOLE_OP: &str = "TPC0190";
/// A known op in a form that the IR does not have.
pub(super) const UNKNOWN_FORM: &str = "TPC0191";
/// A view whose memory is no box of its tensor.
pub(super) const NO_BOX: &str = "TPC0192";
/// Sizes of the batch that stay numbers.
pub(super) const FIXED_BATCH: &str = "TPC0193";

/// An op that ggml does not have.
pub(super) const UNKNOWN_OP: &str = "TPC0194";

/// Every code of [`CaptureError`](super::CaptureError) and of the notes of [`Captured`](super::Captured), in order.
pub const CODES: &[CodeDoc] = &[
    CodeDoc {
        code: "TPC0180",
        title: "not a record of a capture",
        doc: "A line is not a JSON object with the keys of a capture. Example: a file cut in the middle of a line. \
              Cure: capture the graph again.",
    },
    CodeDoc {
        code: "TPC0181",
        title: "unknown element type in a capture",
        doc: "`type` is no name of a ggml type. Example: `\"type\":\"float\"`. Cure: write `f32`.",
    },
    CodeDoc {
        code: "TPC0182",
        title: "impossible sizes in a capture",
        doc: "A size is negative, a row is no whole number of quantisation blocks, or a tensor has more elements than \
              any memory. Example: a q4_K tensor with `\"ne\":[100,…]`. Cure: capture the graph again.",
    },
    CodeDoc {
        code: "TPC0183",
        title: "bad reference in a capture",
        doc: "An id occurs twice, or `src` or `view` names a tensor that no line before defines. Example: tensors in \
              another order than that of computation. Cure: write each tensor before its first use.",
    },
    CodeDoc {
        code: "TPC0184",
        title: "view outside of its tensor",
        doc: "The strides and the offset of a view reach beyond the tensor that it looks into. Example: `view_offs` \
              counted in elements. Cure: give bytes from the start of the tensor that owns the memory.",
    },
    CodeDoc {
        code: "TPC0185",
        title: "strides of a tensor that is no view",
        doc: "A tensor that owns its memory is packed: every stride is the one below times the size below. Example: a \
              permuted tensor with `\"view\":-1`. Cure: name the tensor that it looks into.",
    },
    CodeDoc {
        code: "TPC0186",
        title: "capture without computation",
        doc: "Every record is a leaf. Example: an empty file. Cure: capture the graph that is computed.",
    },
    CodeDoc {
        code: "TPC0187",
        title: "capture does not hold together",
        doc: "The graph that was read breaks an invariant of the IR: a fault of tpc. Cure: report it with the capture.",
    },
    CodeDoc {
        code: WHOLE_OP,
        title: "op without a rule",
        doc: "The capture has an op of ggml that no sharding rule is written for. What it reads and what it makes stays \
              whole on every device; TPC0305 says which weights that concerns. Example: RWKV_WKV6. Cure: none is needed \
              for a sound plan; to split it, add the op to the IR (see the book).",
    },
    CodeDoc {
        code: UNKNOWN_FORM,
        title: "op in a form without a rule",
        doc: "The IR knows the op, but not with these operands or parameters. What it reads and what it makes stays \
              whole on every device. Example: SOFT_MAX with ALiBi. Cure: none is needed for a sound plan.",
    },
    CodeDoc {
        code: NO_BOX,
        title: "view that is no box",
        doc: "The elements of a view are no range of indices per factor of its tensor: they overlap, or run across its \
              rows. The tensor stays whole on every device. Example: a sliding window as a view with \
              overlapping rows. Cure: copy the rows (CONT), or use an op that says what is meant.",
    },
    CodeDoc {
        code: FIXED_BATCH,
        title: "batch sizes of the capture are kept",
        doc: "Some sizes of the batch (tokens, cells of the cache, outputs) could not be told from sizes of the model, \
              so they stay the numbers of the capture and the plan is priced for that batch only. It is \
              sound all the same. Cure: capture with sizes of the batch that no dimension of the model has.",
    },
    CodeDoc {
        code: UNKNOWN_OP,
        title: "op that is none of ggml's",
        doc: "No op of ggml is known by the name that the capture gives. It is planned around: what it reads and what it \
              makes stays whole on every device. Example: an op of a fork, or of a newer ggml. Cure: check the \
              name; a new op is a line in the table of `ggml::op` (see the book).",
    },
];
