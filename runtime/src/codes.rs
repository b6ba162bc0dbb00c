//! The codes of execution, TPC0500 to TPC0523, and of sessions, TPC0572 to TPC0576.

tpc_ir::codes! {
    pub(super) static;

    NOT_LOWERED = error(
        "TPC0500",
        "graph is not lowered",
        "A value lives on a group of devices. Groups exist while shardings are decided; what runs are programs \
         of single devices.",
    )
    .example("interpreting the result of the planner.")
    .cure("run the lowering pass first.");

    WRONG_PLACE = error(
        "TPC0501",
        "op reads from another place",
        "Each place has a memory of its own, and an op reads from that of its own place only.",
    )
    .example("an `add` on dev1 whose operand was computed on dev0.")
    .cure("a `copy` or a collective in between; where the lowering made the program, it is a bug.");

    TYPE = error(
        "TPC0502",
        "operands do not fit the op",
        "The tensors that reach an op have sizes or element types it does not take, or are too few or too many.",
    )
    .example("a `mul_mat` whose operands have rows of 64 and 32.")
    .cure("the verifier finds the op that is wrong.");

    SHAPE = error(
        "TPC0503",
        "tensor has another size than declared",
        "What an op produced, or what the caller gave as an input, has not the sizes that the graph declares for \
         it under this batch's bindings.",
    )
    .example("a mask of 8 cells where n_kv is 16.")
    .cure("make the declaration, the bindings and the data agree.");

    ELEMENTS = error(
        "TPC0504",
        "integers and reals mixed up",
        "A tensor holds integers where real numbers are needed, or the reverse.",
    )
    .example("positions given as f64.")
    .cure("indices, positions and token ids are integers, everything else is real.");

    SIZE = error(
        "TPC0505",
        "size has no value",
        "A symbolic size is negative for this batch, overflows, or the tensor does not fit memory.",
    )
    .example("`n_ctx - n_kv` with more cells in use than there are.")
    .cure("bind every symbol to its true value; use a smaller context or batch.");

    INDEX = error(
        "TPC0506",
        "index out of range",
        "An index that is data names no row, expert or position.",
    )
    .example("token 32000 of a vocabulary of 32000.")
    .cure("token ids start at 0 and must come from the model's own tokenizer.");

    MISSING_WEIGHT = error(
        "TPC0507",
        "tensor is missing from the model",
        "The graph names a tensor that the weight source does not have.",
    )
    .example("`output.weight` in a model with tied embeddings.")
    .cure("build the graph from the same file's header.");

    WEIGHT_MISMATCH = error(
        "TPC0508",
        "tensor is not what the graph declares",
        "A tensor of the model has another type, other sizes or another number of bytes than the graph says.",
    )
    .example("a graph made for the q4_k file run on the q8_0 file.")
    .cure("build the graph from the same file.");

    CUT_BLOCK = error(
        "TPC0509",
        "part of a tensor cuts a block",
        "Quantised tensors are stored in blocks along axis 0, and a device holds whole blocks, or one run of 32 elements \
         each where blocks are longer.",
    )
    .example("rows 0:48 of axis 0 in q8_0, whose blocks hold 32.")
    .cure("ranges that start and end at multiples of the block length.");

    PART_RANGE = error(
        "TPC0510",
        "part of a tensor is beyond its size",
        "A weight's `parts` name indices that the tensor does not have.",
    )
    .example("96:64 of an axis of 128.")
    .cure("check the ranges of the split.");

    QUANT = error(
        "TPC0511",
        "type cannot be executed",
        "There is no encoder for the type of a state or of a copy, or rows are not whole blocks. Every GGUF type is \
         decoded.",
    )
    .example("a q8_0 cache with rows of 24; a graph that writes iq2_xs.")
    .cure("another cache type, or another type of the copy.");

    MISSING_INPUT = error(
        "TPC0512",
        "input is not supplied",
        "The graph has an input that the caller does not know.",
    )
    .example("`mask_swa` in a session without a window.")
    .cure("configure the window, or supply inputs of other names through the callback.");

    STATE_RESIZED = error(
        "TPC0513",
        "state changes its size",
        "A state keeps its content from batch to batch, so its sizes must stay.",
    )
    .example("another n_ctx in the second batch.")
    .cure("keep the bindings that states depend on, or reset the states.");

    CACHE_FULL = error(
        "TPC0514",
        "KV cache is full",
        "More tokens are to be stored than there are free cells. A sliding-window cache frees a cell when no \
         further token of its sequence can see it; it needs about window + batch cells per sequence.",
    )
    .cure("a larger context, a smaller batch, or forgetting finished sequences.");

    BAD_BATCH = error(
        "TPC0515",
        "bad batch",
        "The lists of a batch disagree in length, positions of a sequence do not rise, or an output row names no \
         token.",
    )
    .example("decoding position 5 twice.")
    .cure("one position and one sequence per token.");

    MISSING_OUTPUT = error(
        "TPC0516",
        "output is missing",
        "The graph does not name the output that is asked for.",
    )
    .example("a session on a graph without `logits`.")
    .cure("name the output in the graph.");

    MALFORMED = error(
        "TPC0517",
        "malformed graph",
        "The graph breaks a rule that the verifier checks: a value is used before it is defined, an op has \
         another number of results than it declares.",
    )
    .cure("run the verifier.");

    PARAMETER = error(
        "TPC0518",
        "attribute does not make sense",
        "An op's attribute contradicts its operands.",
    )
    .example("a flash_attn on 4 heads whose `heads` names 3.")
    .cure("see the op's documentation.");

    LEAF = error(
        "TPC0519",
        "leaf evaluated as an op",
        "Weights, inputs and states have no operands; the interpreter supplies their values.",
    )
    .cure("run the graph with the interpreter.");

    STATES_FULL = error(
        "TPC0520",
        "recurrent states are full",
        "Recurrent layers keep a state per sequence, and the session has room for a number of sequences that was \
         set beforehand.",
    )
    .example("a second sequence in a session for one.")
    .cure("more room, or forgetting sequences that are finished.");

    NOTHING_TO_DRAFT = error(
        "TPC0521",
        "nothing to draft",
        "A session drafts after it has decoded a batch, once per block that guesses a token. It has decoded \
         none, all blocks have run for the last one, or the graph has no such blocks.",
    )
    .example("drafting twice with a model that guesses one token.")
    .cure("plan with `--spec-type draft-mtp`; decode first.");

    NO_KERNEL = error(
        "TPC0522",
        "op without a kernel",
        "The executor has no kernel for an op on operands of these element types. The message names both.",
    )
    .cure("`--executor reference` runs every op, slowly; requantising the weight that is named may help.");

    STALE_READ = error(
        "TPC0523",
        "old content of a state is read behind its update",
        "A state has one memory, and an update writes there. An instruction names the state, or a view of it, where \
         rows of it were written before: what it asks for is gone.",
    )
    .example("`relu v0` behind `v4 = set_rows v0, …`, where v4 is the new content of the state v0.")
    .cure("the result of the update where the new content is meant; a read before the update where the old one is.");

    STATE_FILE = error(
        "TPC0572",
        "unusable file of a session",
        "The file is not one that a session was saved to, or it is not whole: bytes are missing, are too many, or differ \
         from those that were written.",
    )
    .example("a file that was cut while it was copied.")
    .cure("leave the file out: the text is read again, and the answer is the same.");

    STATE_VERSION = error(
        "TPC0573",
        "a session of another version",
        "The file has a format that this tpc does not know: a later one wrote it.",
    )
    .cure("the tpc that wrote it, or leave the file out.");

    STATE_MODEL = error(
        "TPC0574",
        "a session of another model",
        "What was saved does not fit the model that is loaded: the file was saved with another model, with caches of other \
         types, or with more tokens or sequences than there are cells for. The number of devices may differ.",
    )
    .example("a session of `--cache-type-k q8_0` loaded with caches of f16.")
    .cure("the model and the options of the run that saved it; or leave the file out.");

    CANNOT_REWIND = error(
        "TPC0575",
        "a sequence cannot go back",
        "Tokens are to be taken from a sequence, and the states that are left do not follow from those that are there. \
         Recurrent states know no earlier token; a cache with a window has forgotten what the earlier token saw; and where \
         the model adds positions to what it stores, tokens cannot move to others.",
    )
    .example("`--context-shift` with a Mamba model.")
    .cure("read the text again from its begin; a larger context instead of `--context-shift`.");

    NO_STATES = error(
        "TPC0576",
        "states cannot be read",
        "The executor does not give the bytes of its states, so that they can be neither saved nor moved.",
    )
    .example("`--save` with `--executor reference`.")
    .cure("`--executor cpu`.");
}
