//! Codes of finding and downloading models.

tpc_ir::codes! {
    pub static;

    REPOSITORY = error(
        "TPC0445",
        "unusable name of a repository or of its file",
        "A repository is USER/NAME, with an optional :QUANT. The names of files are relative and lack `..`.",
    )
    .example("`-hf gemma-3-1b-it-GGUF`.")
    .cure("write `-hf USER/NAME:QUANT`, as on the repository's page.");

    NOT_HERE = error(
        "TPC0446",
        "model is not on this machine",
        "No cache has the model, and `--offline` or HF_HUB_OFFLINE forbids connections.",
    )
    .cure("`tpc models` lists the models here; leave out `--offline` to use the hub.");

    NO_SUCH_MODEL = error(
        "TPC0447",
        "repository lacks the model",
        "The repository has no GGUF file of the wanted name or quantisation. Files of image encoders and drafts do not count.",
    )
    .example("`-hf ggml-org/gemma-3-1b-it-GGUF:Q3_K_S`.")
    .cure("give a quantisation or a file in the message.");

    AMBIGUOUS = error(
        "TPC0448",
        "name fits several models",
        "Several models in the caches have this name.",
    )
    .cure("give one of the names in the message; `tpc models` lists all.");

    FOUND = note(
        "TPC0449",
        "model found in a cache",
        "tpc chose a file for the name: Q4_K_M if there is one, then Q8_0, then the first.",
    )
    .cure("no action is needed; a name with its quantisation silences the note.");

    HUB_ANSWER = error(
        "TPC0450",
        "unusable answer of the hub",
        "The answer is not a Hugging Face hub's list of files.",
    )
    .example("HF_ENDPOINT names a server that is not a hub.")
    .cure("check HF_ENDPOINT and MODEL_ENDPOINT, or download the file and give its path.");

    CHECKSUM = error(
        "TPC0451",
        "download with a wrong checksum",
        "The SHA-256 of the received bytes is not the hub's. tpc deletes the bytes.",
    )
    .cure("try again; if it fails again, a proxy or the disk changes the bytes.");

    CUT = error(
        "TPC0452",
        "download is not finished",
        "The connection broke several times without progress. The received bytes are kept.",
    )
    .cure("run the command again: it continues at the last byte.");

    DISK_SPACE = error(
        "TPC0453",
        "not enough disk space for the download",
        "The file system of the hub cache has less free space than the missing bytes.",
    )
    .cure("free space, or set HF_HUB_CACHE to a folder on another disk.");

    OFFLINE = error(
        "TPC0454",
        "connection needed, but offline",
        "`--offline` or HF_HUB_OFFLINE forbids connections.",
    )
    .example("`tpc plan --offline https://HOST/FILE.gguf`.")
    .cure("leave out `--offline` and unset HF_HUB_OFFLINE, or give a file on this machine.");
}
