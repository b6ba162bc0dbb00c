//! The catalogue of diagnostic codes.

use tpc_ir::CodeDoc;

/// Codes of planning and of the command line.
const OWN: &[CodeDoc] = &[
    CodeDoc {
        code: "TPC0390",
        title: "the plan does not verify",
        doc: "The verifier rejects what the planner made. This is a fault of tpc: nothing is printed that could be wrong.\n\
              Cure: report it with the command and the model's header.",
    },
    CodeDoc {
        code: "TPC0391",
        title: "the programs are not proved to compute what the model says",
        doc: "The proof of the devices' programs against the model's graph stops at the op that is named: its value is\n\
              neither one of the model's, nor a part of one, nor a term of a sum that makes one. Either the programs are\n\
              wrong or the proof lacks a rule for a form; both are faults of tpc. No plan is given.\n\
              Cure: `tpc verify --numeric` tells which it is, by running a small model that is divided alike; if its answers\n\
              agree, `tpc plan --allow-unproved` gives the plan, with this as a warning. Report it with the command and the\n\
              model's header.",
    },
    CodeDoc {
        code: "TPC0392",
        title: "the model cannot be made small",
        doc: "`tpc verify --numeric` runs a small model that is divided as the planned one is. Here no small sizes fit the\n\
              ops, what cannot shrink is too large to run, or the reference executor cannot run an op.\n\
              Example: a captured graph with an op that tpc has no rule for.\n\
              Cure: the proof needs no small model: `tpc verify` without --numeric.",
    },
    CodeDoc {
        code: "TPC0393",
        title: "the small programs have another form",
        doc: "`tpc verify --numeric` compares the programs of the small model with those of the planned one, op by op. They\n\
              differ at the op that is named, in more than sizes: what the small programs compute says little of the\n\
              planned ones. The proof is about the planned ones themselves.\n\
              Cure: report it with the command and the model's header.",
    },
    CodeDoc {
        code: "TPC0394",
        title: "the small programs compute something else",
        doc: "`tpc verify --numeric` ran a small model whole and as the programs of its devices, and the answers differ. The\n\
              message names the first value on a device that is not what the model has, and the op that makes it.\n\
              Cure: report it with the command and the model's header.",
    },
    CodeDoc {
        code: "TPC0400",
        title: "unusable command line",
        doc: "An option's value is not of the form that it takes, or an option or argument is unknown or missing. The\n\
              message says what was expected.\n\
              Example: `--devices zero`, `--tensor-split 1,,2`, `tpc plan` without a model.\n\
              Cure: `tpc COMMAND --help` lists what the command takes.",
    },
    CodeDoc {
        code: "TPC0410",
        title: "unusable override of a tensor's place",
        doc: "`--override-tensor` takes `REGEX=PLACE`, several separated by commas. The regex is one as in most languages,\n\
              lookaround and back references included; it matches when it is found anywhere in a tensor's name. The\n\
              place is `host` (or `CPU`), `mirrored`, or a device by name, position (`dev1`) or number (`CUDA1`).\n\
              Example: `-ot 'blk\\.(1|2)\\.ffn_.*=CPU,output.*=dev0'`.\n\
              Cure: the message names what is wrong and the places that there are.",
    },
    CodeDoc {
        code: "TPC0401",
        title: "option not supported yet",
        doc: "The option is part of the command-line contract, but this version does not plan it; ignoring it would give\n\
              a plan for something else.\nCure: leave it out.",
    },
    CodeDoc {
        code: "TPC0402",
        title: "a file cannot be read or written",
        doc: "The file system refuses. The message has its reason.\n\
              Cure: check the path, the permissions, and the space on the disk.",
    },
    CodeDoc {
        code: "TPC0403",
        title: "unusable topology file",
        doc: "The file is not a topology in RON, or a number in it makes no sense. The message has the line and column.\n\
              Example: `Topology(devices: [(name: \"gpu\", memory: Some(80e9), bandwidth: 2e12, flops: 4e14)])`.",
    },
    CodeDoc {
        code: "TPC0404",
        title: "unusable golden file",
        doc: "The file does not have the magic number, sizes or length of a golden-logits file (see the user guide).",
    },
    CodeDoc {
        code: "TPC0405",
        title: "the model has no tensor data",
        doc: "The file is a header only: it can be planned, not executed.\nCure: give the whole model.",
    },
    CodeDoc {
        code: "TPC0406",
        title: "the comparison failed",
        doc: "The logits differ from the golden ones by more than `--tolerance`.",
    },
    CodeDoc {
        code: "TPC0407",
        title: "unknown code",
        doc: "`tpc explain`, `--deny` or `--allow` names a code that does not exist.\n\
              Cure: `tpc explain` without an argument lists all codes.",
    },
    CodeDoc {
        code: "TPC0408",
        title: "unknown preset or specification",
        doc: "`tpc synth` was given neither a preset nor a specification of the form `ARCH:key=value,…`.",
    },
    CodeDoc {
        code: "TPC0409",
        title: "no such tensor",
        doc: "`--why` names no weight, state or other value of the graph, and as a regular expression it matches none.\n\
              Example: `--why blk.0.attn_qkv` where queries, keys and values have weights of their own.\n\
              Cure: the tensors' names are in `tpc plan -v`.",
    },
];

/// Every documented code, in order.
pub fn codes() -> Vec<CodeDoc> {
    let mut out: Vec<CodeDoc> = OWN.to_vec();
    out.extend(tpc_lint::lints().map(|l| l.doc));
    out.extend(
        tpc_gguf::CODES
            .iter()
            .map(|&(code, title, doc)| CodeDoc { code, title, doc }),
    );
    out.extend(tpc_models::CODES);
    out.extend(tpc_ggml::capture::CODES);
    out.extend(tpc_ggml::meta::CODES);
    out.extend(tpc_ir::text::CODES);
    out.extend(tpc_ir::verify::CODES);
    out.sort_by_key(|c| c.code);
    out
}
