//! The engine's diagnostic codes.

tpc_ir::codes! {
    pub(crate) static;

    CONTEXT_FULL = note(
        "TPC0425",
        "the context is full",
        "A sequence has as many tokens as the caches have cells, so that no further token can be generated.",
    )
    .cure("a larger context: `-c`.");

    LONG_PROMPT = error(
        "TPC0426",
        "the prompt does not fit the context",
        "The prompt has more tokens than the caches have cells, one of which the answer needs at least.",
    )
    .cure("a larger context: `-c`; or a shorter prompt.");

    CANNOT_RUN = error(
        "TPC0760",
        "a client's graph cannot be run",
        "The graph has an op that no executor has, is not proved when it is divided, does not fit the machine, or reads what an \
         earlier graph did not keep. The connection is closed: the protocol has no answer that says so.",
    )
    .example("a function of the program (`ggml_map_custom`).")
    .cure("`tpc rpc --capture` writes the graph down for `tpc lint --graph`; `-ot` keeps the layers elsewhere.");

    BY_REFERENCE = note(
        "TPC0761",
        "an op without a kernel",
        "The graph has an op of ggml for which there is neither a sharding rule nor a kernel. It is computed whole, on one \
         thread, by the reference: the result is right, and slow. It is told once.",
    )
    .example("a convolution of an encoder of images.")
    .cure("none is needed; `-ot` keeps such layers in the program itself, which may be faster.");
}
