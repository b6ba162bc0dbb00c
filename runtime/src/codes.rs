tpc_ir::codes! {
    pub(super) static;

    NOT_LOWERED = error(
        "TPC0500",
        "graph is not lowered to programs of single devices",
        "A value is on a group of devices; executors run one program per device.",
    )
    .cure("run the lowering pass first.");

    WRONG_PLACE = error(
        "TPC0501",
        "op reads a value from another device",
        "An op reads only from its own device's memory.",
    )
    .example("an `add` on dev1 whose operand was computed on dev0.")
    .cure("insert a `copy` or a collective. If tpc made the program, this is a bug in tpc: report it.");

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
        "A result or an input differs from the graph's declaration for this batch.",
    )
    .example("a mask of 8 cells for n_kv = 16.")
    .cure("make declaration, symbols and data agree.");

    ELEMENTS = error(
        "TPC0504",
        "integers and reals mixed up",
        "The op needs real numbers and the tensor has integers, or the reverse.",
    )
    .example("positions given as f64.")
    .cure("give indices, positions and token ids as integers, other values as reals.");

    SIZE = error(
        "TPC0505",
        "size without a usable value",
        "A symbolic size is negative or overflows for this batch, or the tensor exceeds memory.",
    )
    .example("`n_ctx - n_kv` with n_kv above n_ctx.")
    .cure("bind every symbol, or use a smaller context or batch.");

    INDEX = error(
        "TPC0506",
        "index out of range",
        "The data name a row, expert or position that does not exist.",
    )
    .example("token 32000 of a vocabulary of 32000.")
    .cure("use ids of the model's own tokenizer, which start at 0.");

    MISSING_WEIGHT = error(
        "TPC0507",
        "tensor is missing from the model",
        "The graph names a tensor that the file lacks.",
    )
    .example("`output.weight` in a model with tied embeddings.")
    .cure("build the graph from the header of the same file.");

    WEIGHT_MISMATCH = error(
        "TPC0508",
        "tensor differs from the graph's declaration",
        "A tensor of the model does not have the type or size that the graph declares.",
    )
    .example("a graph of the q4_k file, run on the q8_0 file.")
    .cure("build the graph from the same file.");

    CUT_BLOCK = error(
        "TPC0509",
        "part of a tensor cuts a block",
        "Along axis 0, a device stores whole blocks, or one run of 32-element pieces of longer blocks.",
    )
    .example("rows 0:48 of axis 0 in q8_0, which has blocks of 32.")
    .cure("end ranges at multiples of the block length.");

    PART_RANGE = error(
        "TPC0510",
        "part of a tensor exceeds its size",
        "A weight's `parts` exceed the tensor.",
    )
    .example("96:64 of an axis of 128.")
    .cure("correct the ranges of the split.");

    QUANT = error(
        "TPC0511",
        "element type cannot be written",
        "tpc has no encoder for the type of a state or copy, or a row is not whole blocks.",
    )
    .example("a q8_0 cache with rows of 24; a graph that writes iq2_xs.")
    .cure("choose another type for the cache or copy.");

    MISSING_INPUT = error(
        "TPC0512",
        "input is missing",
        "The caller supplied no value for an input.",
    )
    .example("`mask_swa` in a session without a sliding window.")
    .cure("configure the window, or supply the input through the callback.");

    STATE_RESIZED = error(
        "TPC0513",
        "state changes its size",
        "States keep their content between batches, so their sizes are fixed.",
    )
    .example("another n_ctx in the second batch.")
    .cure("keep the sizes, or reset the states.");

    CACHE_FULL = error(
        "TPC0514",
        "KV cache is full",
        "The batch needs more cells than are free. A sliding window needs about window + batch cells per sequence.",
    )
    .cure("use a larger context, a smaller batch, or remove finished sequences.");

    BAD_BATCH = error(
        "TPC0515",
        "invalid batch",
        "The batch's lists differ in length, positions do not increase, or an output row names a missing token.",
    )
    .example("decoding position 5 twice.")
    .cure("give one position and one sequence per token.");

    MISSING_OUTPUT = error(
        "TPC0516",
        "output is missing",
        "The graph lacks the requested output.",
    )
    .example("a session on a graph without `logits`.")
    .cure("name the output in the graph.");

    MALFORMED = error(
        "TPC0517",
        "malformed graph",
        "The graph breaks a rule of the verifier, such as definition before use.",
    )
    .cure("run the verifier, which lists all errors.");

    PARAMETER = error(
        "TPC0518",
        "attribute contradicts the operands",
        "The op's operands rule out this value of the attribute.",
    )
    .example("a `flash_attn` on 4 heads whose `heads` names 3.")
    .cure("see the op's documentation.");

    LEAF = error(
        "TPC0519",
        "leaf evaluated as an op",
        "The interpreter supplies weights, inputs and states; ops do not compute them.",
    )
    .cure("run the graph with the interpreter.");

    STATES_FULL = error(
        "TPC0520",
        "recurrent states are full",
        "Recurrent layers keep one state for each of a fixed number of sequences.",
    )
    .cure("allow more sequences with `--parallel`, or remove finished ones.");

    NOTHING_TO_DRAFT = error(
        "TPC0521",
        "drafting is not possible now",
        "The session has not decoded a batch, or all draft blocks have run, or the graph lacks draft blocks.",
    )
    .cure("plan with `--spec-type draft-mtp`, and decode a batch first.");

    NO_KERNEL = error(
        "TPC0522",
        "op without a kernel",
        "The executor lacks a kernel for this op with these element types.",
    )
    .cure("use `--executor reference` (slow), or requantise the named weight.");

    STALE_READ = error(
        "TPC0523",
        "state is read after its content was replaced",
        "A later instruction reads content that an update replaced.",
    )
    .example("`relu v0` after `v4 = set_rows v0, …`.")
    .cure("read the update's result, or read before the update.");

    PREFIX = error(
        "TPC0524",
        "prefix cannot be copied",
        "A stored prefix does not fit the session: another model, other cache types, a sequence with tokens, or a \
         window without its tokens.",
    )
    .cure("read the text instead, and keep one store of prefixes per loaded model.");

    STATE_FILE = error(
        "TPC0572",
        "unusable session file",
        "The file is not a saved session, or bytes are missing, extra or changed.",
    )
    .cure("omit the file: tpc reads the text again.");

    STATE_VERSION = error(
        "TPC0573",
        "session file of a newer version",
        "This version does not know the file's format.",
    )
    .cure("use the newer version, or omit the file.");

    STATE_MODEL = error(
        "TPC0574",
        "session of another model",
        "The model or the cache types differ, or the session needs more cells. The number of devices may differ.",
    )
    .example("a session of `--cache-type-k q8_0` loaded with f16 caches.")
    .cure("use the model and options of the saved run, or omit the file.");

    CANNOT_REWIND = error(
        "TPC0575",
        "sequence cannot go back",
        "Recurrent states and sliding windows do not keep the earlier state that removing tokens needs. Tokens with \
         stored positions cannot move.",
    )
    .example("`--context-shift` with a Mamba model.")
    .cure("read the text again, or use a larger context.");

    NO_STATES = error(
        "TPC0576",
        "states cannot be read",
        "The executor does not expose its states, so sessions cannot be saved or moved.",
    )
    .example("`--save` with `--executor reference`.")
    .cure("use `--executor cpu`.");

    RANK = error(
        "TPC0630",
        "rank has failed",
        "One of the processes that run a plan together has ended, does not answer, or reports an error.",
    )
    .example("the machine of rank 1 has lost power.")
    .cure("mend the cause that the message names, then start all ranks again.");
}
