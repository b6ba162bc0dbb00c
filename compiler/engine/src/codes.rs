tpc_ir::codes! {
    pub(crate) static;

    CONTEXT_FULL = note(
        "TPC0425",
        "context is full",
        "The sequence fills the caches, so generation stops.",
    )
    .cure("use a larger context: `-c`.");

    LONG_PROMPT = error(
        "TPC0426",
        "prompt does not fit the context",
        "The prompt and one token of the answer exceed the caches.",
    )
    .cure("use a larger context (`-c`) or a shorter prompt.");

    CANNOT_RUN = error(
        "TPC0760",
        "client's graph cannot be run",
        "The graph has an unsupported op, fails the proof, exceeds the machine, or reads an earlier graph's lost \
         data. tpc closes the connection, because the protocol cannot report errors.",
    )
    .example("a function of the client program (`ggml_map_custom`).")
    .cure("lint the graph (`tpc rpc --capture`, `tpc lint --graph`), or keep the layers elsewhere with `-ot`.");

    BY_REFERENCE = note(
        "TPC0761",
        "op without a kernel",
        "The reference executor computes this op of ggml on one thread: correct, but slow. tpc reports this once.",
    )
    .example("a convolution of an image encoder.")
    .cure("no action is needed; `-ot` keeps such layers in the client.");
}
