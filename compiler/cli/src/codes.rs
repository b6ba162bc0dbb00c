//! Diagnostic codes that only the program reports.

use tpc_ir::Severity;

tpc_ir::codes! {
    pub(super) static;

    NO_INFLUENCE = note(
        "TPC0420",
        "option without effect",
        "The option belongs to another program, and does not change placement, transfers or times in tpc.",
    )
    .example("`tpc plan MODEL -t 16 --temp 0.7 --port 8080`.")
    .cure("no action is needed.");

    READ_AS = note(
        "TPC0421",
        "option with another name in tpc",
        "tpc reads another program's option as its own, named in the message.",
    )
    .example("`-sm row`, `--device CUDA0,CUDA1`, `--max-model-len 32768`.")
    .cure("no action is needed; tpc's spelling silences the note.");

    UNFINISHED = note(
        "TPC0422",
        "file without all tensor data",
        "The file ends before its tensor data, like an unfinished download. tpc can plan, prove and inspect the \
         model, but not run it.",
    )
    .cure("no action is needed for planning.");

    CHOSEN = note(
        "TPC0423",
        "model found in a folder",
        "The path is a folder with one model.",
    )
    .example("`tpc plan models/llama-8b/`.")
    .cure("no action is needed; the file's path silences the note.");

    CONFIG = error(
        "TPC0424",
        "unusable settings",
        "`tpc.toml` is not TOML, or has an unknown key or a value of the wrong kind.",
    )
    .example("`deny = \"warnings\"`; the list is `deny = [\"warnings\"]`.")
    .cure("see the book for a file with every key, or name another with `tpc lint --config FILE`.");

    OTHER_PROGRAM = error(
        "TPC0427",
        "program to compare with has failed",
        "The command of `tpc bench --compare` cannot run, fails, or prints no readable speeds.",
    )
    .cure("try the command alone; tpc reads llama-bench's table, `-o json` and `-o jsonl`.");

    BUSY = note(
        "TPC0438",
        "busy machine",
        "Other programs used the cores, so tpc's threads waited for them. tpc then uses fewer threads for a while.",
    )
    .cure("end the other programs, or give `-t` the number of free cores.");

    LISTEN = error(
        "TPC0756",
        "cannot listen at the address",
        "Another program listens there, or this machine lacks the address.",
    )
    .example("a second `tpc rpc` on the same port.")
    .cure("end the other program, or use another port with `--listen`; 0 selects a free one.");

    OPEN_SERVER = error(
        "TPC0757",
        "server open to other machines",
        "ggml's RPC protocol has neither authentication nor encryption, so anyone who reaches the port can use the \
         device.",
    )
    .example("`--listen 0.0.0.0:50052`.")
    .cure("listen at 127.0.0.1 and use a tunnel, or add `--allow-remote` in a trusted network.")
    .with_milder_severity(Severity::Warning);

    NO_GRAPH = error(
        "TPC0758",
        "no client has computed a graph",
        "No program used the device, or one used only its memory.",
    )
    .example("llama-bench with `-ngl 0`.")
    .cure("give the program `--rpc` with the address, and `-ngl 99`.");

    CLIENT_PROGRAM = error(
        "TPC0759",
        "program to capture has failed",
        "The command of `tpc lint --rpc-command` cannot run, or fails. tpc still lints the captured graphs.",
    )
    .cure("try the command alone; llama.cpp must be built with `-DGGML_RPC=ON`.");

    BOTH_WAYS = error(
        "TPC0428",
        "model does not generate token by token",
        "The model generates by diffusion or computes embeddings: tokens attend to later ones. `tpc run` appends tokens \
         one by one, and `tpc eval` needs one batch.",
    )
    .example("`tpc run llada.gguf -p Hello`.")
    .cure("use `tpc run --embeddings` for embeddings, else `tpc eval` with an `--ubatch-size` for all tokens.");

    GRAPHS_DIFFER = error(
        "TPC0397",
        "two graphs compute different values",
        "`tpc bisect` ran the ops that differ between two graphs on the same random operands. The message names the \
         first op whose value differs.",
    )
    .example("a RoPE with base 10000 in one graph and 1000000 in the other.")
    .cure("compare the op's parameters and operands in the report with the model's reference implementation.");

    NOT_COMPARED = error(
        "TPC0398",
        "two graphs cannot be compared by value",
        "The reference executor cannot run an op of the graphs, or a graph is inconsistent.",
    )
    .cure("capture both graphs again with the same model, batch and context, or report the message.");

    ENGINES_DIFFER = error(
        "TPC0399",
        "two engines compute different values",
        "`tpc bisect --rpc` ran each op of a graph alone on two engines, on the same random operands. The message names \
         the first op whose results differ.",
    )
    .example("a build of llama.cpp whose RoPE kernel has a fault.")
    .cure("run the op of the report in the server's own tests, such as llama.cpp's `test-backend-ops`.");

    NO_SERVER = error(
        "TPC0457",
        "RPC server does not answer",
        "No server listens at the address of `--rpc`, or it does not speak ggml's RPC protocol.",
    )
    .cure("start `ggml-rpc-server` of llama.cpp 0.5 or newer, or `tpc rpc --devices cpu`, and give its address.");

    BASELINE = error(
        "TPC0455",
        "unusable file of accepted findings",
        "The file of `tpc lint --baseline` has another format, or an invalid line.",
    )
    .cure("write the file with `--update-baseline`.");

    STALE = note(
        "TPC0456",
        "accepted finding no longer occurs",
        "The file of `tpc lint --baseline` accepts a finding that this run does not have.",
    )
    .cure("add `--update-baseline`, which removes the entry.");
}
