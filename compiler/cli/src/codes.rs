//! The codes of the command line that only the program reports.

use tpc_ir::Severity;

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

    UNFINISHED = note(
        "TPC0422",
        "a file of which data are missing",
        "The file ends before the data of its tensors do, as that of a download does that goes on. Its header is whole, \
         so it can be planned, proved and inspected; it cannot be run.",
    )
    .example("`tpc plan model.gguf.part`, or the first megabytes of a model.")
    .cure("none is needed for planning.");

    CHOSEN = note(
        "TPC0423",
        "a model was found in a folder",
        "A folder was given in place of a file, and there is one model in it.",
    )
    .example("`tpc plan models/llama-8b/`.")
    .cure("none is needed; the file's own path silences the note.");

    CONFIG = error(
        "TPC0424",
        "unusable settings",
        "A `tpc.toml` is not TOML, has a key that tpc does not know, or a value of another kind than the key takes. The \
         message has the line and column.",
    )
    .example("`deny = \"warnings\"`, which is a list: `deny = [\"warnings\"]`.")
    .cure("the book shows a file with every key; `tpc lint --config FILE` reads another one.");

    OTHER_PROGRAM = error(
        "TPC0427",
        "the program to compare with has failed",
        "The command of `tpc bench --compare` cannot be run, ends with an error, or prints no speeds that can be read.",
    )
    .example("`--compare \"llama-bench -m missing.gguf\"`.")
    .cure("try the command alone; llama-bench's table, `-o json` and `-o jsonl` are read.");

    LISTEN = error(
        "TPC0756",
        "no listening at the address",
        "The system does not let the server listen at the address: another program does, or the machine does not have it.",
    )
    .example("a second `tpc rpc` on the same port.")
    .cure("end the other program, or take another port with `--listen`; the port 0 is any that is free.");

    OPEN_SERVER = error(
        "TPC0757",
        "a server that anyone may use",
        "The address of `--listen` can be reached from other machines. ggml's RPC protocol has neither authentication nor \
         encryption: who reaches the port may use the device.",
    )
    .example("`--listen 0.0.0.0:50052`.")
    .cure("listen at 127.0.0.1 and reach it by a tunnel; in a network that you trust, `--allow-remote`.")
    .or(Severity::Warning);

    NO_GRAPH = error(
        "TPC0758",
        "no client has computed a graph",
        "No program has used the device, or it has used it for memory only.",
    )
    .example("llama-bench with `-ngl 0`.")
    .cure("give the program `--rpc` with the address, and `-ngl 99`.");

    CLIENT_PROGRAM = error(
        "TPC0759",
        "the program to be captured has failed",
        "The command of `tpc lint --rpc-command` cannot be run, or ends with an error. What it computed before that is looked \
         at all the same.",
    )
    .example("`--rpc-command \"llama-bench -m missing.gguf\"`.")
    .cure("try the command alone; its llama.cpp must be built with `-DGGML_RPC=ON`.");

    BOTH_WAYS = error(
        "TPC0428",
        "a model that does not generate token by token",
        "Tokens of the model attend to later ones too: it generates by diffusion, which fills in the tokens of a whole \
         sequence in any order. `tpc run` appends token after token. `tpc eval` must give the model all tokens in one \
         batch.",
    )
    .example("`tpc run llada.gguf -p Hello`; `tpc eval` of 600 tokens with `--ubatch-size 512`.")
    .cure("`tpc plan` and `tpc eval` take such models; give `eval` an `--ubatch-size` that holds all tokens.");
}
