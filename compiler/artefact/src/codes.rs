//! The codes of artefacts, TPC0580 to TPC0594.

tpc_ir::codes! {
    pub static;

    DAMAGED = error(
        "TPC0580",
        "not a tpc artefact, or a damaged one",
        "The file is not a zip archive in the exact form that `tpc compile` writes, or its bytes have changed since. \
         tpc also rejects links, compressed entries, unsafe names and extra bytes, because they could hide content.",
    )
    .example("another zip archive, an interrupted download, or an artefact that another program packed again.")
    .cure("check the path, in case the file is not an artefact. If the artefact is damaged, fetch it again from a \
           source you trust, or compile the model again.");

    MANIFEST = error(
        "TPC0581",
        "unusable manifest",
        "`manifest.ron` describes an artefact's model, options and devices. The manifest is not RON, lacks a field, \
         has an unknown field, or contradicts the file. The message has the position.",
    )
    .cure("compile the model again.");

    NEWER = error(
        "TPC0582",
        "artefact of a newer tpc",
        "The artefact, or one of its sections, has a newer format than this tpc knows. tpc reads older formats.",
    )
    .cure("update tpc, or compile the model again with this version.");

    PROGRAM = error(
        "TPC0583",
        "program in the artefact is rejected",
        "The program's text does not parse, or the verifier found an error. tpc verifies every program of a file \
         before it runs. The message has the finding and its code.",
    )
    .example("an artefact with a changed address.")
    .cure("compile the model again. If `tpc compile` has just written the program, this is a bug in tpc: report it \
           with the message.");

    NO_MODEL = error(
        "TPC0584",
        "model of the artefact not found",
        "Weights, vocabulary and chat template stay in the model file. tpc looks for its name at compile time in the \
         artefact's folder.",
    )
    .cure("give `--model PATH`, or put the model file into the artefact's folder.");

    OTHER_MODEL = error(
        "TPC0585",
        "artefact of another model",
        "The hash of the model's header and tensor table differs from the artefact's. The file was converted or \
         quantised again, or is another model of that name.",
    )
    .cure("compile this model, or give the compiled one with `--model PATH`.");

    REBUILD = error(
        "TPC0586",
        "artefact must be compiled again",
        "The artefact is intact, but does not fit this tpc: another executor, or another version of the weights' \
         storage format. The message has the field with both values.",
    )
    .cure("run the command in the help.");

    FIXED = error(
        "TPC0587",
        "option is fixed in the artefact",
        "`tpc compile` fixes placement, context and batch sizes.",
    )
    .example("`tpc run model.tpc -c 8192`.")
    .cure("leave the option out, or compile the model with that option.");

    DEVICES = error(
        "TPC0588",
        "artefact for other devices",
        "An artefact has one program per device, and needs that number of devices.",
    )
    .example("`tpc run model.tpc --devices cpu` for an artefact of two devices.")
    .cure("leave `--devices` out, or compile the model for these devices.");

    NOT_THE_MODEL = error(
        "TPC0589",
        "artefact does not compute its model",
        "tpc compared the artefact's programs with the model's graph. The proof fails, or the manifest contradicts \
         the model. The message names the op.",
    )
    .cure("compile the model again. If a new artefact fails too, this is a bug in tpc: report it with the message.");

    UNCHECKED = note(
        "TPC0590",
        "artefact checked without its model",
        "The model file is missing. tpc checked the container and the manifest, and verified the program.",
    )
    .cure("give `--model PATH`, or put the model file into the artefact's folder.");

    KERNELS = error(
        "TPC0591",
        "unusable kernels in an artefact",
        "The kernels differ from their index: a module is missing, has another length or hash, has an invalid name, \
         or is not machine code for cards. The message names the module.",
    )
    .example("an artefact with a changed kernel.")
    .cure("compile the model again.");

    MEMORY = error(
        "TPC0592",
        "artefact needs more memory than the machine has",
        "`tpc compile` fixed the memory of every device and of the host. A device, or this machine, has less. The \
         message has both figures.",
    )
    .example("an artefact for two cards of 24 GB, and `--devices 2x4060`.")
    .cure("compile the model for this machine, with a smaller context (`-c`), smaller batches (`-ub`) or more \
           devices; `tpc plan` finds sizes that fit.");

    TOPOLOGY = warning(
        "TPC0593",
        "artefact for another topology",
        "The artefact was planned for another topology file, or without one. It runs, but another plan may be faster \
         here. The message has the hash of each file.",
    )
    .example("`tpc check model.tpc --topology here.ron` with an artefact from another machine.")
    .cure("run the command in the help.");

    NO_CARDS = note(
        "TPC0594",
        "artefact checked without cards",
        "The artefact is for cards, and no driver reports any here. tpc checked container, manifest, program and \
         model, but not the kernels' targets and the cards' memory.",
    )
    .example("`tpc check` of an artefact for `cuda:0,cuda:1` on a build machine.")
    .cure("check the artefact again on the machine that will run it.");
}
