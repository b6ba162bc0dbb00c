//! The codes of planning and of the command line. Several crates report them.

use tpc_ir::Severity;

tpc_ir::codes! {
    pub static;

    UNVERIFIED_PLAN = error(
        "TPC0390",
        "the plan does not verify",
        "The verifier rejects what the planner made. This is a fault of tpc: nothing is printed that could be \
         wrong.",
    )
    .cure("report it with the command and the model's header.");

    UNPROVED = error(
        "TPC0391",
        "the programs are not proved to compute what the model says",
        "The proof of the devices' programs against the model's graph stops at the op that is named: its value \
         is neither one of the model's, nor a part of one, nor a term of a sum that makes one. Either the \
         programs are wrong or the proof lacks a rule for a form; both are faults of tpc. No plan is given.",
    )
    .cure("`tpc verify --numeric` tells which it is, by running a small model that is divided alike; if its \
           answers agree, `tpc plan --allow-unproved` gives the plan, with this as a warning. Report it with the \
           command and the model's header.")
    .with_milder_severity(Severity::Warning);

    CANNOT_SHRINK = error(
        "TPC0392",
        "the model cannot be made small",
        "`tpc verify --numeric` runs a small model that is divided as the planned one is. Here no small sizes \
         fit the ops, what cannot shrink is too large to run, or the reference executor cannot run an op.",
    )
    .example("a captured graph with an op that tpc has no rule for.")
    .cure("the proof needs no small model: `tpc verify` without --numeric.");

    OTHER_FORM = warning(
        "TPC0393",
        "the small programs have another form",
        "`tpc verify --numeric` compares the programs of the small model with those of the planned one, op by \
         op. They differ at the op that is named, in more than sizes: what the small programs compute says \
         little of the planned ones. The proof is about the planned ones themselves.",
    )
    .cure("report it with the command and the model's header.");

    NUMBERS_DIFFER = error(
        "TPC0394",
        "the small programs compute something else",
        "`tpc verify --numeric` ran a small model whole and as the programs of its devices, and the answers \
         differ. The message names the first value on a device that is not what the model has, and the op that \
         makes it.",
    )
    .cure("report it with the command and the model's header.");

    OVER_BUDGET = error(
        "TPC0395",
        "more work than a command may do",
        "A command may make so many terms, hold so many segments, take so many steps and fill so many bytes, so that \
         it answers within seconds and a few hundred megabytes whatever it is given. The limits are counts, the \
         same on every machine, and at least ten times what the largest models and captures known take. The message \
         says which limit, and at which op, tensor and layer it was met.",
    )
    .example("a captured graph that concatenates a thousand views of one tensor in every order.")
    .cure("look at the op that is named: what makes its tensors so many parts? Plan a smaller part of the graph, or \
           with -sm layer or -sm none, which divide no tensors; report the file if it is a model's.");

    COMMAND_LINE = error(
        "TPC0400",
        "unusable command line",
        "An option's value is not of the form that it takes, or an option or argument is unknown or missing. The \
         message says what was expected.",
    )
    .example("`--devices zero`, `--tensor-split 1,,2`, `tpc plan` without a model.")
    .cure("`tpc COMMAND --help` lists what the command takes.");

    UNSUPPORTED_OPTION = error(
        "TPC0401",
        "option not supported yet",
        "The option is part of the command-line contract, but this version does not plan it; ignoring it would \
         give a plan for something else.",
    )
    .cure("leave it out.");

    FILE_ACCESS = error(
        "TPC0402",
        "a file cannot be read or written",
        "The file system refuses. The message has its reason.",
    )
    .cure("check the path, the permissions, and the space on the disk.");

    TOPOLOGY_FILE = error(
        "TPC0403",
        "unusable topology file",
        "The file is not a topology in RON, or a number in it makes no sense. The message has the line and \
         column.",
    )
    .example("`Topology(devices: [(card: \"RTX 3090\", count: 2), (name: \"gpu\", memory: \"80 GB\", bandwidth: \
              \"2 TB/s\", flops: \"400 TFLOP/s\")])` is one that is usable.");

    GOLDEN_FILE = error(
        "TPC0404",
        "unusable golden file",
        "The file does not have the magic number, sizes or length of a golden-logits file (see the user guide).",
    );

    NO_TENSOR_DATA = error(
        "TPC0405",
        "the model has no tensor data",
        "The file is a header only: it can be planned, not executed.",
    )
    .cure("give the whole model.");

    LOGITS_DIFFER = error(
        "TPC0406",
        "the comparison failed",
        "The logits differ from the golden ones by more than `--tolerance`.",
    );

    UNKNOWN_CODE = error(
        "TPC0407",
        "unknown code",
        "`tpc explain`, `--deny` or `--allow` names a code that does not exist.",
    )
    .cure("`tpc explain` without an argument lists all codes.");

    UNKNOWN_PRESET = error(
        "TPC0408",
        "unknown preset or specification",
        "`tpc synth` was given neither a preset nor a specification of the form `ARCH:key=value,…`.",
    );

    NO_SUCH_TENSOR = error(
        "TPC0409",
        "no such tensor",
        "`--why` names no weight, state or other value of the graph, and as a regular expression it matches \
         none.",
    )
    .example("`--why blk.0.attn_qkv` where queries, keys and values have weights of their own.")
    .cure("the tensors' names are in `tpc plan -v -v`.");

    TENSOR_OVERRIDE = error(
        "TPC0410",
        "unusable override of a tensor's place",
        "`--override-tensor` takes `REGEX=PLACE`, several separated by commas. The regex is one as in most \
         languages, lookaround and back references included; it matches when it is found anywhere in a tensor's \
         name. The place is `host` (or `CPU`), `mirrored`, or a device by name, position (`dev1`) or number \
         (`CUDA1`).",
    )
    .example("`-ot 'blk\\.(1|2)\\.ffn_.*=CPU,output.*=dev0'`.")
    .cure("the message names what is wrong and the places that there are.");

    OLD_PLAN = error(
        "TPC0411",
        "an earlier plan that cannot be compared",
        "`tpc plan --diff` takes what `tpc plan --format json` printed. The file is not such an object: it is of \
         another format or version, a refusal without a plan, an array of several plans, or too large.",
    )
    .example("`--diff` with the output of `tpc lint --format json`.")
    .cure("write it anew: `tpc plan MODEL … --format json > OLD.json`.");

    FOREIGN_TYPE = error(
        "TPC0412",
        "a tensor's type is one of ik_llama.cpp",
        "ik_llama.cpp has quantisation types of its own, such as iq3_k and iq4_ks. tpc plans files with them (`--engine \
         ik_llama.cpp`), and has no kernels for them yet.",
    )
    .example("`tpc run` with a file of IQ3_K.")
    .cure("run the file with ik_llama.cpp, or get a file of llama.cpp's types, such as q4_k.");

    CALIBRATION_FILE = error(
        "TPC0414",
        "measurements that cannot be used",
        "`tpc plan --calibrate` takes what llama-bench prints (md, json, jsonl, csv) or a log with the timings of \
         llama.cpp. The file has no such line, or the line that is named is of another form or another model.",
    )
    .example("`--calibrate` with a row of `pp512+tg128`, which measures the prompt and the generation in one.")
    .cure("measure again: `llama-bench -m MODEL -p 512 -n 128 -o md > bench.md`.")
    .with_milder_severity(Severity::Warning);

    CALIBRATED = note(
        "TPC0413",
        "the speeds are calibrated",
        "`tpc plan --calibrate` fitted the machine to measurements: the share of its bandwidth and of its arithmetic, \
         its fixed times, its reductions. The message says from how many rows, and how far the estimates of these \
         rows still are from what was measured.",
    )
    .cure("`--write-topology FILE` keeps the calibration in a topology file.");

    CARD_ASSUMED = note(
        "TPC0440",
        "a card's name stands for several",
        "Cards of this name differ in form or memory: an H100 has one speed as a module and another as a PCI Express \
         card. The plan is for the one that is most often meant.",
    )
    .example("`--devices 2xH100`, which is taken for the H100 SXM.")
    .cure("name the card in full; `tpc devices` lists them.");

    LINK_ASSUMED = note(
        "TPC0441",
        "the links between cards are assumed",
        "A bridge may join cards of this kind (NVLink, Infinity Fabric), but most machines have none, so that the plan \
         counts with PCI Express.",
    )
    .example("`--devices 2x3090`.")
    .cure("`--link nvlink`, `--link pcie-p2p` or `--link pcie` says what the machine has; a topology file does too.");
}
