tpc_ir::codes! {
    pub static;

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

    SHORT_TEXT = error(
        "TPC0429",
        "text too short for a perplexity",
        "A perplexity needs at least two windows of text, each as long as the context.",
    )
    .example("a text of 600 tokens and `-c 512`.")
    .cure("use a longer text or a smaller context (`-c`).");

    BASE_FILE = error(
        "TPC0436",
        "unusable file of log-probabilities",
        "The file of `--kl-divergence` is not such a file, is cut, or was made with another vocabulary or context.",
    )
    .cure("write it again with `tpc perplexity --save-all-logits FILE`; llama-perplexity writes the same format.");

    NOT_FINITE = error(
        "TPC0439",
        "a weight is not finite",
        "A weight of the model is NaN or infinite, so every logit is NaN. Published models have no such weights: the \
         file is damaged.",
    )
    .example("bytes of 0xff in the scale of a block.")
    .cure("compare the checksum with the publisher's, and fetch the file again.");

    OTHER_DRAFT = error(
        "TPC0437",
        "draft model does not fit the model",
        "A draft model must generate token by token, and have the model's vocabulary.",
    )
    .example("a draft of another family, or a head such as EAGLE-3 that needs the model's hidden states.")
    .cure("use a smaller model of the same family, or `--spec-type ngram-simple`, which needs no second model.");

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
