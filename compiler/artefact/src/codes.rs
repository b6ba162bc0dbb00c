//! Codes TPC0580 to TPC0594.

tpc_ir::codes! {
    pub static;

    DAMAGED = error(
        "TPC0580",
        "not a tpc artefact, or a damaged one",
        "The file is not a zip archive that `tpc compile` wrote, or its bytes have changed. Repacked archives are \
         rejected, because they could hide content.",
    )
    .example("another zip archive, or an interrupted download.")
    .cure("check the path: the file may not be an artefact. Fetch a damaged artefact again from a source you trust, \
           or compile the model again.");

    MANIFEST = error(
        "TPC0581",
        "unusable manifest",
        "`manifest.ron` is not RON, lacks a field, has an unknown field, or contradicts the file.",
    )
    .cure("compile the model again.");

    NEWER = error(
        "TPC0582",
        "artefact of a newer tpc",
        "The artefact, or a section, has a newer format than this tpc knows.",
    )
    .cure("update tpc, or compile the model again with this version.");

    PROGRAM = error(
        "TPC0583",
        "program in the artefact is rejected",
        "The text does not parse, or the verifier found an error. tpc verifies programs before it runs them.",
    )
    .cure("compile the model again. If a new artefact fails too, report this bug in tpc with the message.");

    NO_MODEL = error(
        "TPC0584",
        "model of the artefact not found",
        "Weights, vocabulary and chat template stay in the model file, which tpc expects in the artefact's folder.",
    )
    .cure("give `--model PATH`, or move the model file into that folder.");

    OTHER_MODEL = error(
        "TPC0585",
        "artefact of another model",
        "The hash of the header and tensor table differs from the compiled model's.",
    )
    .cure("compile this model, or give the compiled one with `--model PATH`.");

    REBUILD = error(
        "TPC0586",
        "artefact must be compiled again",
        "The artefact is intact, but made for another executor or storage format of weights.",
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
        "An artefact has one program per device, and needs this number of devices.",
    )
    .example("`tpc run model.tpc --devices cpu` for an artefact of two devices.")
    .cure("leave `--devices` out, or compile the model for these devices.");

    NOT_THE_MODEL = error(
        "TPC0589",
        "artefact does not compute its model",
        "The artefact's programs differ from the model's graph, or the manifest contradicts the model.",
    )
    .cure("compile the model again. If a new artefact fails too, report this bug in tpc with the message.");

    UNCHECKED = note(
        "TPC0590",
        "artefact checked without its model",
        "The model file is missing. tpc checked the container and the manifest, and verified the program.",
    )
    .cure("give `--model PATH`, or move the model file into the artefact's folder.");

    KERNELS = error(
        "TPC0591",
        "unusable kernels in an artefact",
        "A module is missing, differs from the index, has an invalid name, or is not machine code for cards.",
    )
    .cure("compile the model again.");

    MEMORY = error(
        "TPC0592",
        "artefact needs more memory than available",
        "`tpc compile` fixed the memory of devices and host. A device, or this machine, has less.",
    )
    .cure("compile the model for this machine, with a smaller context (`-c`), smaller batches (`-ub`) or more \
           devices; `tpc plan` finds sizes that fit.");

    TOPOLOGY = warning(
        "TPC0593",
        "artefact for another topology",
        "The artefact was planned for another topology file, or without one. Another plan may be faster here.",
    )
    .cure("run the command in the help.");

    NO_CARDS = note(
        "TPC0594",
        "artefact checked without cards",
        "No driver reports cards here, so the kernels' targets and the cards' memory are not checked.",
    )
    .cure("check the artefact on the machine with the cards.");
}
