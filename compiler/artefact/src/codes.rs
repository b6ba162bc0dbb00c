//! The codes of artefacts, TPC0580 to TPC0594.

tpc_ir::codes! {
    pub static;

    DAMAGED = error(
        "TPC0580",
        "damaged artefact",
        "The file is no zip archive in the form that `tpc compile` writes: it ends early, an entry's checksum is wrong, \
         entries overlap, are compressed, are links, or have names that would leave the archive, or there are bytes that \
         belong to no entry. There is one form only, so that nothing can hide in a file.",
    )
    .example("an artefact whose download was not finished, or one that was packed again by another program.")
    .cure("compile it again, or fetch it again from a source you trust.");

    MANIFEST = error(
        "TPC0581",
        "unusable manifest",
        "`manifest.ron` says of which model, options and devices an artefact is. This one is no RON, lacks a field, has one \
         that tpc does not know, or contradicts the rest of the file. The message has the place.",
    )
    .cure("compile it again.");

    NEWER = error(
        "TPC0582",
        "an artefact of a newer tpc",
        "The artefact, or one of its sections, has a format that is newer than those that this tpc knows. Artefacts of older \
         formats are read.",
    )
    .cure("update tpc, or compile the model again with this one.");

    PROGRAM = error(
        "TPC0583",
        "an artefact whose program is not accepted",
        "The program's text does not parse, or the verifier finds that a step reads what is not there, that memory is \
         overwritten too early, or the like. Programs of files are checked as those that were just planned, and run only \
         then. The message has the finding and its code.",
    )
    .example("an artefact in which somebody changed an address.")
    .cure("compile it again; a program that `tpc compile` has just written is a fault of tpc, please report it.");

    NO_MODEL = error(
        "TPC0584",
        "the artefact's model is not there",
        "Weights, vocabulary and chat template stay in the model's file. It is looked for beside the artefact by the name \
         that it had when it was compiled.",
    )
    .cure("`--model PATH`, or put the file beside the artefact.");

    OTHER_MODEL = error(
        "TPC0585",
        "the artefact is of another model",
        "The hash of the model's header and tensor table is not the one in the artefact: the file was converted again, \
         quantised otherwise, or is another model of that name.",
    )
    .cure("compile this model, or give the one that was compiled by `--model PATH`.");

    REBUILD = error(
        "TPC0586",
        "the artefact must be compiled again",
        "The artefact is whole, and what it was compiled for is not what is here: another executor, another version of how \
         weights are stored. The message has the field, what was found and what is wanted.",
    )
    .cure("the command that the help shows.");

    FIXED = error(
        "TPC0587",
        "an option that is part of the artefact",
        "Placement, context and batch sizes were decided when the artefact was compiled; a program has addresses for these \
         alone.",
    )
    .example("`tpc run model.tpc -c 8192`.")
    .cure("leave the option out, or compile the model with it.");

    DEVICES = error(
        "TPC0588",
        "an artefact for other devices",
        "An artefact has a program per device, and is bound to as many devices when it runs.",
    )
    .example("`tpc run model.tpc --devices cpu`, where the model was compiled for two devices.")
    .cure("leave `--devices` out, or compile the model for these devices.");

    NOT_THE_MODEL = error(
        "TPC0589",
        "the artefact does not compute its model",
        "The model was read again and its graph compared with the artefact's programs: the proof fails, or a fact of the \
         manifest is not the model's. The message names the op.",
    )
    .cure("compile it again; if it was just compiled, this is a fault of tpc: please report it.");

    UNCHECKED = note(
        "TPC0590",
        "checked without the model",
        "The artefact's model is not there, so that the artefact was checked by itself alone: its container, its manifest, and \
         its program by the verifier.",
    )
    .cure("`--model PATH`, or put the file beside the artefact.");

    KERNELS = error(
        "TPC0591",
        "unusable kernels in an artefact",
        "The section of kernels is not what its index says: a module is missing, has another length or hash, is no machine code \
         for cards, or has a name that none can have. The message has the module.",
    )
    .example("an artefact in which somebody changed a kernel.")
    .cure("compile it again.");

    MEMORY = error(
        "TPC0592",
        "an artefact that needs more memory than there is",
        "The memory of every place was decided when the artefact was compiled. A device that is asked for has less than that, as \
         far as its memory is known, or this machine has less than the host's part; of a program for the processor that is all of \
         it. The message has both figures.",
    )
    .example("an artefact for two cards of 24 GB, and `--devices 2x4060`.")
    .cure("compile it for this machine: a smaller context (`-c`), smaller batches (`-ub`), more devices; `tpc plan` finds what fits.");

    TOPOLOGY = warning(
        "TPC0593",
        "an artefact for another topology",
        "The artefact was planned for another topology file than this one, or for none. It runs; but links, speeds and memories \
         decided how the model was divided, and for these another plan may be better. The message has the hash of either file.",
    )
    .example("`tpc check model.tpc --topology here.ron`, where the artefact was compiled elsewhere.")
    .cure("the command that the help shows.");

    NO_CARDS = note(
        "TPC0594",
        "checked without cards",
        "The artefact is for cards, and this machine has none that a driver tells of. Container, manifest, program and model were \
         checked; whether its kernels are for these cards, and whether the cards have the memory, was not.",
    )
    .example("`tpc check` of an artefact for `cuda:0,cuda:1` on a machine that builds.")
    .cure("check it again where it will run.");
}
