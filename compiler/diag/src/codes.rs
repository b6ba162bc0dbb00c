//! The codes of planning and of the command line. Several crates report them.

use tpc_ir::Severity;

tpc_ir::codes! {
    pub static;

    UNVERIFIED_PLAN = error(
        "TPC0390",
        "plan does not verify",
        "The verifier rejects the planner's result, so tpc prints no plan. This is a bug in tpc.",
    )
    .cure("report it with the command and the model's header.");

    UNPROVED = error(
        "TPC0391",
        "programs are not proved to compute the model",
        "The proof of the devices' programs against the model's graph stops at the op in the message. Either the \
         programs are wrong, or the proof lacks a rule; both are bugs in tpc.",
    )
    .cure("run `tpc verify --numeric`, which runs a small model with the same split. If its answers agree, `tpc plan \
           --allow-unproved` prints the plan with a warning. Report it with the command and the model's header.")
    .with_milder_severity(Severity::Warning);

    CANNOT_SHRINK = error(
        "TPC0392",
        "model cannot be made small",
        "`tpc verify --numeric` runs a small model with the planned split. Small sizes do not fit the ops, the rest \
         is too large to run, or the reference executor lacks an op.",
    )
    .example("a captured graph with an op that tpc does not know.")
    .cure("run `tpc verify` without `--numeric`; the proof needs no small model.");

    OTHER_FORM = warning(
        "TPC0393",
        "small programs have another form",
        "`tpc verify --numeric` compares the small model's programs with the planned ones. They differ in more than \
         sizes, so the small run says little about the plan. The proof still holds.",
    )
    .cure("report it with the command and the model's header.");

    NUMBERS_DIFFER = error(
        "TPC0394",
        "small programs compute something else",
        "`tpc verify --numeric` ran a small model whole and split, and the answers differ. The message names the \
         first wrong value and its op. This is a bug in tpc.",
    )
    .cure("report it with the command and the model's header.");

    OVER_BUDGET = error(
        "TPC0395",
        "limit of a command's work exceeded",
        "Limits on terms, segments, steps and bytes let every command answer within seconds and a few hundred \
         megabytes. They are at least ten times the need of the largest known models. The message has the limit, op, \
         tensor and layer.",
    )
    .example("a captured graph that concatenates a thousand views of one tensor in every order.")
    .cure("plan a smaller part of the graph, or use `-sm layer` or `-sm none`, which split no tensors. If the file \
           is a published model, report it.");

    COMMAND_LINE = error(
        "TPC0400",
        "unusable command line",
        "An option or argument is unknown, missing or malformed. The message has the expected form.",
    )
    .example("`--devices zero`, `--tensor-split 1,,2`, `tpc plan` without a model.")
    .cure("see `tpc COMMAND --help`.");

    UNSUPPORTED_OPTION = error(
        "TPC0401",
        "option not supported yet",
        "This version cannot plan with the option. Ignoring the option would give a plan for something else.",
    )
    .cure("leave the option out.");

    FILE_ACCESS = error(
        "TPC0402",
        "file cannot be read or written",
        "The file system refuses access. The message has the reason.",
    )
    .cure("check the path, the permissions, and the free space on the disk.");

    TOPOLOGY_FILE = error(
        "TPC0403",
        "unusable topology file",
        "The file is not a topology in RON, or has an impossible number. The message has the line and column.",
    )
    .example("a usable file is `Topology(devices: [(card: \"RTX 3090\", count: 2), (name: \"gpu\", memory: \"80 \
              GB\", bandwidth: \"2 TB/s\", flops: \"400 TFLOP/s\")])`.");

    GOLDEN_FILE = error(
        "TPC0404",
        "unusable golden file",
        "The file does not have the magic number, sizes or length of a golden-logits file (see the user guide).",
    );

    NO_TENSOR_DATA = error(
        "TPC0405",
        "model without tensor data",
        "The file is only a header. It can be planned, not executed.",
    )
    .cure("give the whole model.");

    LOGITS_DIFFER = error(
        "TPC0406",
        "logits differ from the golden logits",
        "The logits differ from the golden ones by more than `--tolerance`.",
    );

    UNKNOWN_CODE = error(
        "TPC0407",
        "unknown code",
        "`tpc explain`, `--deny` or `--allow` names a code that does not exist.",
    )
    .cure("run `tpc explain`, which lists all codes.");

    UNKNOWN_PRESET = error(
        "TPC0408",
        "unknown preset or specification",
        "`tpc synth` needs a preset, or a specification of the form `ARCH:key=value,…`.",
    );

    NO_SUCH_TENSOR = error(
        "TPC0409",
        "no such tensor",
        "`--why` matches no weight, state or other value of the graph, neither as a name nor as a regular \
         expression.",
    )
    .example("`--why blk.0.attn_qkv` for a model with separate weights of queries, keys and values.")
    .cure("run `tpc plan -v -v`, which lists the names.");

    TENSOR_OVERRIDE = error(
        "TPC0410",
        "unusable override of a tensor's place",
        "`--override-tensor` takes `REGEX=PLACE`, separated by commas. The regex matches anywhere in a tensor's \
         name, and may use lookaround and back references. A place is `host` (or `CPU`), `mirrored`, or a device by \
         name, position (`dev1`) or number (`CUDA1`).",
    )
    .example("`-ot 'blk\\.(1|2)\\.ffn_.*=CPU,output.*=dev0'`.")
    .cure("correct the part in the message, which lists the places.");

    OLD_PLAN = error(
        "TPC0411",
        "earlier plan that cannot be compared",
        "`tpc plan --diff` takes the output of `tpc plan --format json`. The file has another format or version, is \
         a refusal or an array of plans, or is too large.",
    )
    .example("`--diff` with the output of `tpc lint --format json`.")
    .cure("write the plan again: `tpc plan MODEL … --format json > OLD.json`.");

    FOREIGN_TYPE = error(
        "TPC0412",
        "tensor with a type of ik_llama.cpp",
        "ik_llama.cpp has its own quantisation types, such as iq3_k and iq4_ks. tpc plans such files (`--engine \
         ik_llama.cpp`), but cannot run them yet.",
    )
    .example("`tpc run` with a file of IQ3_K.")
    .cure("run the file with ik_llama.cpp, or use a file of llama.cpp's types, such as q4_k.");

    CALIBRATION_FILE = error(
        "TPC0414",
        "unusable measurements",
        "`tpc plan --calibrate` takes llama-bench's output (md, json, jsonl, csv) or a log with llama.cpp's timings. \
         The file lacks such a line, or a line has another form or another model.",
    )
    .example("`--calibrate` with a row of `pp512+tg128`, which measures prompt and generation together.")
    .cure("measure again: `llama-bench -m MODEL -p 512 -n 128 -o md > bench.md`.")
    .with_milder_severity(Severity::Warning);

    CALIBRATED = note(
        "TPC0413",
        "speeds are calibrated",
        "`tpc plan --calibrate` fitted the machine to measurements: its shares of bandwidth and arithmetic, its \
         fixed times and its reductions. The message has the number of rows and the remaining error.",
    )
    .cure("add `--write-topology FILE` to keep the calibration.");

    CARD_ASSUMED = note(
        "TPC0440",
        "card name stands for several cards",
        "Cards of this name differ in form or memory: the H100 has other speeds as a module than as a PCI Express \
         card. The plan assumes the most common card.",
    )
    .example("`--devices 2xH100`, read as the H100 SXM.")
    .cure("give the card's full name; `tpc devices` lists the names.");

    LINK_ASSUMED = note(
        "TPC0441",
        "links between cards are assumed",
        "A bridge (NVLink, Infinity Fabric) may join these cards, but most machines lack one. The plan assumes PCI \
         Express.",
    )
    .example("`--devices 2x3090`.")
    .cure("state the link with `--link nvlink`, `--link pcie-p2p` or `--link pcie`, or in a topology file.");
}
