//! The codes of execution, TPC0500 to TPC0523, and of sessions, TPC0572 to TPC0576.

tpc_ir::codes! {
    pub(super) static;

    NOT_LOWERED = error(
        "TPC0500",
        "graph is not lowered to programs of single devices",
        "A value is on a group of devices. Only programs of single devices can run.",
    )
    .example("interpreting the planner's result.")
    .cure("run the lowering pass first.");

    WRONG_PLACE = error(
        "TPC0501",
        "op reads a value from another device",
        "An op reads only from the memory of its own device.",
    )
    .example("an `add` on dev1 whose operand was computed on dev0.")
    .cure("insert a `copy` or a collective. If lowering made the program, this is a bug in tpc: report it with the \
           command.");

    TYPE = error(
        "TPC0502",
        "operands do not fit the op",
        "The operands have the wrong number, sizes or element types.",
    )
    .example("a `mul_mat` whose operands have rows of 64 and 32.")
    .cure("run the verifier, which names the op.");

    SHAPE = error(
        "TPC0503",
        "tensor has other sizes than declared",
        "An op's result, or an input from the caller, differs in size from the graph's declaration for this batch.",
    )
    .example("a mask of 8 cells for n_kv = 16.")
    .cure("make the declaration, the values of the symbols and the data agree.");

    ELEMENTS = error(
        "TPC0504",
        "integers and reals mixed up",
        "The op needs real numbers and the tensor has integers, or the reverse.",
    )
    .example("positions given as f64.")
    .cure("give indices, positions and token ids as integers, and everything else as reals.");

    SIZE = error(
        "TPC0505",
        "size without a usable value",
        "A symbolic size is negative or overflows for this batch, or the tensor does not fit into memory.",
    )
    .example("`n_ctx - n_kv` with n_kv above n_ctx.")
    .cure("bind every symbol to its true value, or use a smaller context or batch.");

    INDEX = error(
        "TPC0506",
        "index out of range",
        "An index in the data exceeds the number of rows, experts or positions.",
    )
    .example("token 32000 of a vocabulary of 32000.")
    .cure("use token ids of the model's own tokenizer; ids start at 0.");

    MISSING_WEIGHT = error(
        "TPC0507",
        "tensor is missing from the model",
        "The graph names a tensor that the model file does not have.",
    )
    .example("`output.weight` in a model with tied embeddings.")
    .cure("build the graph from the header of the same file.");

    WEIGHT_MISMATCH = error(
        "TPC0508",
        "tensor differs from the graph's declaration",
        "A tensor of the model has another type, size or number of bytes than the graph declares.",
    )
    .example("a graph of the q4_k file, run on the q8_0 file.")
    .cure("build the graph from the same file.");

    CUT_BLOCK = error(
        "TPC0509",
        "part of a tensor cuts a block",
        "Quantised tensors are stored in blocks along axis 0. A device stores whole blocks, or one run of a longer \
         block's 32-element pieces.",
    )
    .example("rows 0:48 of axis 0 in q8_0, which has blocks of 32.")
    .cure("use ranges that start and end at multiples of the block length.");

    PART_RANGE = error(
        "TPC0510",
        "part of a tensor exceeds its size",
        "A weight's `parts` name indices beyond the tensor's size.",
    )
    .example("96:64 of an axis of 128.")
    .cure("correct the ranges of the split.");

    QUANT = error(
        "TPC0511",
        "element type cannot be written",
        "tpc decodes every GGUF type, but cannot encode every type of a state or copy. Rows must be whole blocks.",
    )
    .example("a q8_0 cache with rows of 24; a graph that writes iq2_xs.")
    .cure("choose another cache type, or another type for the copy.");

    MISSING_INPUT = error(
        "TPC0512",
        "input is missing",
        "The graph has an input for which the caller has not supplied a value.",
    )
    .example("`mask_swa` in a session without a sliding window.")
    .cure("configure the window, or supply other inputs through the callback.");

    STATE_RESIZED = error(
        "TPC0513",
        "state changes its size",
        "A state keeps its content from batch to batch, so its size must not change.",
    )
    .example("another n_ctx in the second batch.")
    .cure("keep the values of the symbols in state sizes, or reset the states.");

    CACHE_FULL = error(
        "TPC0514",
        "KV cache is full",
        "The batch has more tokens than free cells. A sliding-window cache needs about window + batch cells per \
         sequence; it frees cells outside the window.",
    )
    .cure("use a larger context or a smaller batch, or remove finished sequences.");

    BAD_BATCH = error(
        "TPC0515",
        "invalid batch",
        "The batch's lists differ in length, positions of a sequence do not rise, or an output row has no token.",
    )
    .example("decoding position 5 twice.")
    .cure("give one position and one sequence per token.");

    MISSING_OUTPUT = error(
        "TPC0516",
        "output is missing",
        "The graph does not have the requested output.",
    )
    .example("a session on a graph without `logits`.")
    .cure("name the output in the graph.");

    MALFORMED = error(
        "TPC0517",
        "malformed graph",
        "The graph breaks a rule of the verifier: for example, a value is used before its definition.",
    )
    .cure("run the verifier, which lists all errors.");

    PARAMETER = error(
        "TPC0518",
        "attribute contradicts the operands",
        "The op's attribute has a value that its operands rule out.",
    )
    .example("a `flash_attn` on 4 heads whose `heads` names 3.")
    .cure("correct the attribute; see the op's documentation.");

    LEAF = error(
        "TPC0519",
        "leaf evaluated as an op",
        "Weights, inputs and states are not computed: the interpreter supplies their values.",
    )
    .cure("run the graph with the interpreter.");

    STATES_FULL = error(
        "TPC0520",
        "recurrent states are full",
        "Recurrent layers keep one state per sequence, for a fixed number of sequences.",
    )
    .example("a second sequence in a session for one.")
    .cure("allow more sequences with `--parallel`, or remove finished ones.");

    NOTHING_TO_DRAFT = error(
        "TPC0521",
        "drafting is not possible now",
        "Drafting needs a decoded batch and an unused draft block. The session has decoded no batch, every block has \
         run, or the graph lacks draft blocks.",
    )
    .example("drafting twice with a model that guesses one token.")
    .cure("plan with `--spec-type draft-mtp`, and decode a batch first.");

    NO_KERNEL = error(
        "TPC0522",
        "op without a kernel",
        "The executor lacks a kernel for this op with these element types. The message names both.",
    )
    .cure("use `--executor reference`, which runs every op slowly, or requantise the weight in the message.");

    STALE_READ = error(
        "TPC0523",
        "state is read after its content was replaced",
        "An update overwrites the state's memory. A later instruction reads the old content, which is gone.",
    )
    .example("`relu v0` after `v4 = set_rows v0, …`, which makes v4 the new content of v0.")
    .cure("read the update's result for the new content, or read the old content before the update.");

    STATE_FILE = error(
        "TPC0572",
        "unusable session file",
        "The file is not a saved session, or is damaged: bytes are missing, extra or changed.",
    )
    .example("a file that was truncated while copied.")
    .cure("leave the file out: tpc reads the text again, with the same answer.");

    STATE_VERSION = error(
        "TPC0573",
        "session file of a newer version",
        "A later version of tpc wrote the file, in a format that this version does not know.",
    )
    .cure("use the later version, or leave the file out.");

    STATE_MODEL = error(
        "TPC0574",
        "session of another model",
        "The session does not fit the loaded model: another model, other cache types, or more tokens or sequences \
         than cells. The number of devices may differ.",
    )
    .example("a session of `--cache-type-k q8_0` loaded with f16 caches.")
    .cure("use the model and options of the run that saved the session, or leave the file out.");

    CANNOT_REWIND = error(
        "TPC0575",
        "sequence cannot go back",
        "Removing tokens needs an earlier state. Recurrent states and sliding windows do not keep one. If cached \
         values include positions, tokens cannot move.",
    )
    .example("`--context-shift` with a Mamba model.")
    .cure("read the text again from its start, or use a larger context instead of `--context-shift`.");

    NO_STATES = error(
        "TPC0576",
        "states cannot be read",
        "The executor does not expose the bytes of its states, so sessions cannot be saved or moved.",
    )
    .example("`--save` with `--executor reference`.")
    .cure("use `--executor cpu`.");
}
