//! Codes that several crates report: planning and the command line.

use tpc_ir::Severity;

tpc_ir::codes! {
    pub static;

    UNVERIFIED_PLAN = error(
        "TPC0390",
        "plan does not verify",
        "The verifier rejects the planner's result, so tpc prints no plan.",
    )
    .cure("report this bug in tpc with the command and the model's header.");

    UNPROVED = error(
        "TPC0391",
        "the plan is not proved",
        "tpc could not prove that the devices' programs compute the model. The proof stops at the op in the message. This is a bug in tpc.",
    )
    .cure("run `tpc verify --numeric`. If its answers agree, `tpc plan --allow-unproved` prints the plan; else do not \
           use the plan. Report the bug with the command and the model's header.")
    .with_milder_severity(Severity::Warning);

    CANNOT_SHRINK = error(
        "TPC0392",
        "model cannot be made small",
        "`tpc verify --numeric` runs a small model. Small sizes do not fit the ops, are too large to run, or need an \
         op that the reference executor lacks.",
    )
    .cure("run `tpc verify` without `--numeric`.");

    OTHER_FORM = warning(
        "TPC0393",
        "small programs have another form",
        "The small model's programs differ from the planned ones in more than sizes, so `--numeric` proves little. \
         The proof still holds.",
    )
    .cure("report it with the command and the model's header.");

    NUMBERS_DIFFER = error(
        "TPC0394",
        "programs of the small model give other results",
        "The small model gives different answers whole and split. The message names the first wrong value.",
    )
    .cure("report this bug in tpc with the command and the model's header.");

    OVER_BUDGET = error(
        "TPC0395",
        "limit of a command's work exceeded",
        "Limits let commands answer within seconds and a few hundred megabytes. The largest known models need at \
         most an eighth.",
    )
    .example("a graph that concatenates a thousand views of one tensor.")
    .cure("plan a smaller part of the graph, or use `-sm layer` or `-sm none`. If the file is a published model, \
           report it.");

    BITS_NOT_KEPT = error(
        "TPC0396",
        "the bits of one device cannot be kept",
        "`--deterministic on` requires that every sum has the bits of one device. In this plan, a sum over devices adds \
         in another order.",
    )
    .cure("omit `--deterministic on`, or use `-sm layer` or `-sm none`. Report the model's header.");

    COMMAND_LINE = error(
        "TPC0400",
        "unusable command line",
        "An option or argument is unknown, missing or malformed.",
    )
    .example("`--devices zero`, `--tensor-split 1,,2`, `tpc plan` without a model.")
    .cure("see `tpc COMMAND --help`.");

    UNSUPPORTED_OPTION = error(
        "TPC0401",
        "option not supported yet",
        "tpc does not support this option, and ignoring it would change the plan.",
    )
    .cure("leave the option out if a plan without it helps you.");

    FILE_ACCESS = error(
        "TPC0402",
        "file cannot be read or written",
        "The file system refuses access.",
    )
    .cure("check the path, the permissions, and the free space.");

    TOPOLOGY_FILE = error(
        "TPC0403",
        "unusable topology file",
        "The file is not a topology in RON, or has an impossible number.",
    )
    .example("a usable file is `Topology(devices: [(card: \"RTX 3090\", count: 2), (name: \"gpu\", memory: \"80 \
              GB\", bandwidth: \"2 TB/s\", flops: \"400 TFLOP/s\")])`.");

    GOLDEN_FILE = error(
        "TPC0404",
        "unusable golden file",
        "The magic number, sizes or length are not a golden-logits file's (see the user guide).",
    );

    NO_TENSOR_DATA = error(
        "TPC0405",
        "model without tensor data",
        "A bare header can be planned, not executed.",
    )
    .cure("give the whole model.");

    LOGITS_DIFFER = error(
        "TPC0406",
        "logits differ from the golden logits",
        "The largest difference exceeds `--tolerance`.",
    );

    UNKNOWN_CODE = error(
        "TPC0407",
        "unknown code",
        "`tpc explain`, `--deny` or `--allow` names an unknown code.",
    )
    .cure("run `tpc explain`, which lists all codes.");

    UNKNOWN_PRESET = error(
        "TPC0408",
        "unknown preset or specification",
        "`tpc synth` takes a preset, or `ARCH:key=value,…`.",
    );

    NO_SUCH_TENSOR = error(
        "TPC0409",
        "no such tensor",
        "`--why` matches no weight, state or other value, by name or regular expression.",
    )
    .example("`--why blk.0.attn_qkv` for a model with separate queries, keys and values.")
    .cure("run `tpc plan -v -v`, which lists the names.");

    TENSOR_OVERRIDE = error(
        "TPC0410",
        "unusable override of a tensor's place",
        "`--override-tensor` takes `REGEX=PLACE,…`. The regex matches anywhere in a name, with lookaround and back \
         references. Places are `host` (or `CPU`), `mirrored`, or a device's name, position (`dev1`) or number \
         (`CUDA1`).",
    )
    .example("`-ot 'blk\\.(1|2)\\.ffn_.*=CPU,output.*=dev0'`.")
    .cure("correct the part in the message.");

    OLD_PLAN = error(
        "TPC0411",
        "earlier plan that cannot be compared",
        "The file is not a plan of `tpc plan --format json`, contains several plans, or is too large.",
    )
    .cure("write the plan again: `tpc plan MODEL … --format json > OLD.json`.");

    FOREIGN_TYPE = error(
        "TPC0412",
        "tensor with a type of ik_llama.cpp",
        "tpc plans such types (`--engine ik_llama.cpp`), but cannot run them yet.",
    )
    .example("`tpc run` with iq3_k.")
    .cure("run the file with ik_llama.cpp, or use llama.cpp's types, such as q4_k.");

    CALIBRATION_FILE = error(
        "TPC0414",
        "unusable measurements",
        "`--calibrate` reads llama-bench's output (md, json, jsonl, csv) or llama.cpp's log. The file lacks timings, \
         or a line has another form or model.",
    )
    .example("a row of `pp512+tg128`, which measures both together.")
    .cure("measure again: `llama-bench -m MODEL -p 512 -n 128 -o md > bench.md`.")
    .with_milder_severity(Severity::Warning);

    NO_CONFIGURATION = error(
        "TPC0416",
        "no configuration for the plan",
        "`tpc plan --emit` writes no file, because the engine or the target cannot run the plan.",
    )
    .example("`--emit compose` for a plan with RPC servers: llama.cpp's published images lack the RPC back end.")
    .cure("follow the help of the message, or use another target of `--emit`.");

    CALIBRATED = note(
        "TPC0413",
        "speeds are calibrated",
        "`--calibrate` fitted the machine's bandwidth, arithmetic, fixed times and reductions to measurements.",
    )
    .cure("add `--write-topology FILE` to keep the calibration.");

    CARD_ASSUMED = note(
        "TPC0440",
        "card name stands for several cards",
        "Cards of this name differ in form or memory. The plan assumes the most common.",
    )
    .example("`--devices 2xH100`, read as the H100 SXM.")
    .cure("give the full name; `tpc devices` lists them.");

    LINK_ASSUMED = note(
        "TPC0441",
        "links between cards are assumed",
        "A bridge (NVLink, Infinity Fabric) may join these cards, and a fast network these machines. The plan assumes \
         PCI Express between cards and Ethernet of 10 Gbit/s between machines.",
    )
    .example("`--devices 2x3090`.")
    .cure(
        "state the link with `--link nvlink`, `--link pcie-p2p` or `--link pcie`, the network with `--devices \
         2*8xH100-SXM@ib-ndr`, or both in a topology file."
    );
}
