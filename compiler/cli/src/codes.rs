//! The codes of the command line that only the program reports.

tpc_ir::codes! {
    pub(super) static;

    NO_INFLUENCE = note(
        "TPC0420",
        "options without influence",
        "The options are another program's, and what they set does not change what tpc computes: neither where \
         tensors are, nor what is moved, nor how long it takes. The message says why of each.",
    )
    .example("`tpc plan MODEL -t 16 --temp 0.7 --port 8080`.")
    .cure("none is needed; leaving them out gives the same result.");

    READ_AS = note(
        "TPC0421",
        "an option that is called otherwise here",
        "The option, or its value, is another program's. It was read as the option of tpc that the message names.",
    )
    .example("`-sm row`, `--device CUDA0,CUDA1`, `--max-model-len 32768`.")
    .cure("none is needed; tpc's own spelling silences the note.");
}
