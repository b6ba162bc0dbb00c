//! Other programs' options and their meanings in tpc.
//!
//! A subcommand's own options take precedence.

use tpc_ggml::llama_cpp::Arity::{self, One, Switch};
use tpc_ggml::llama_cpp::{OptionSpec, Setting, groups};

#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    Model,
    Repository,
    RepositoryFile,
    /// Equivalent to an option of tpc with the same value.
    Means(&'static str),
    /// Equivalent to an option of tpc; the function translates the value.
    Translated(&'static str, fn(&str) -> Translation),
    Ignored(&'static str),
    /// No effect on a plan, for this reason. Commands that generate text refuse the option because it changes the text.
    Unplanned(&'static str),
    /// A mistake: message and cure.
    Refused(&'static str, &'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Translation {
    Same,
    Other(String, &'static str),
    /// No value: the option is removed for this reason.
    Dropped(&'static str),
}

/// Other programs' options with one meaning.
#[derive(Debug)]
pub(super) struct ForeignOption {
    /// The options, at least one, all with the same number of values.
    options: &'static [OptionSpec],
    pub(super) effect: Effect,
}

impl ForeignOption {
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.options.iter().flat_map(|o| o.names).copied()
    }

    pub(super) fn arity(&self) -> Arity {
        self.options[0].arity
    }
}

const fn foreign(effect: Effect, options: &'static [OptionSpec]) -> ForeignOption {
    ForeignOption { options, effect }
}

/// Creates spellings that llama.cpp's programs lack, or that differ in meaning from the rest of their option.
const fn named(arity: Arity, names: &'static [&'static str]) -> OptionSpec {
    OptionSpec {
        names,
        env: "",
        arity,
        setting: Setting::Other,
    }
}

use Effect::{Ignored, Means, Model, Refused, Repository, RepositoryFile, Translated, Unplanned};

pub(super) const THREADS: &str = "a plan does not depend on threads";
pub(super) const SAMPLING: &str = "sampling does not change a plan";
pub(super) const LENGTH: &str =
    "a plan covers one token and one batch; --depth sets the cached tokens";
pub(super) const LOADING: &str = "a plan does not depend on loading";
pub(super) const SERVER: &str = "a plan does not depend on a server's settings";
pub(super) const CHAT: &str = "a plan does not depend on the text";
const LOGS: &str = "tpc does not write such a log";
pub(super) const FITTING: &str = "if a plan does not fit, TPC0300 names options that fit";
pub(super) const POSITIONS: &str = "scaling positions does not change sizes; -c sets the context";
pub(super) const DRAFTING: &str =
    "tpc plan -md FILE counts a draft model; --spec-type draft-mtp plans the model's own blocks";
pub(super) const BESIDE: &str = "tpc plan counts the files of --mmproj, --lora and --control-vector; reserve memory for others with --reserve";
const SCHEDULE: &str = "tpc chooses the order and the kernels of ops";
pub(super) const CACHED: &str = "a plan does not depend on cached prompts";
const UNIFIED: &str = "-c is the cache of all sequences together, with a part for each";

/// Options that tpc lacks, and options of tpc whose values have other names in other programs.
pub(super) const FOREIGN_OPTIONS: &[ForeignOption] = &[
    // llama.cpp: options that change a plan.
    foreign(Model, &[groups::MODEL, groups::MODEL_URL]),
    foreign(Repository, &[groups::HF_REPO]),
    foreign(RepositoryFile, &[groups::HF_FILE]),
    foreign(
        Refused(
            "tpc does not read Docker's registry",
            "download the model and give its file: tpc plan MODEL.gguf",
        ),
        &[groups::DOCKER_REPO],
    ),
    foreign(
        Refused(
            "tpc plans the file's own metadata",
            "change a copy with llama.cpp's gguf_set_metadata.py, and plan the copy",
        ),
        &[groups::OVERRIDE_KV],
    ),
    foreign(
        Translated("--split-mode", split_mode),
        &[named(One, &["--split-mode"])],
    ),
    foreign(
        Translated("--parallel", parallel),
        &[named(One, &["--parallel"])],
    ),
    foreign(Translated("--devices", devices), &[groups::DEVICE]),
    foreign(Translated("--reserve", mebibytes), &[groups::FIT_TARGET]),
    foreign(
        Translated("--override-tensor", dense_on_host),
        &[groups::N_CPU_FFN],
    ),
    foreign(
        Means("--ctx-size"),
        &[named(
            One,
            &[
                "-ctx",
                "--n-ctx",
                "--n_ctx",
                "--ctx",
                "--context",
                "--context-size",
                "--context-length",
                "--max-model-len",
                "--max-seq-len",
            ],
        )],
    ),
    foreign(
        Means("--devices"),
        &[named(
            One,
            &[
                "--device-count",
                "--num-devices",
                "--n-devices",
                "--gpu-count",
                "--num-gpus",
                "--n-gpus",
            ],
        )],
    ),
    foreign(
        Means("--n-gpu-layers"),
        &[named(
            One,
            &["--n_gpu_layers", "--num-gpu-layers", "--gpulayers"],
        )],
    ),
    foreign(
        Ignored("the cache is on the devices by default; -nkvo keeps it on the host"),
        &[groups::KV_OFFLOAD],
    ),
    foreign(
        Ignored("memory and speed depend on --ubatch-size, into which batches are divided"),
        &[groups::BATCH],
    ),
    foreign(Ignored(FITTING), &[groups::FIT]),
    foreign(Ignored(FITTING), &[named(Switch, &["--no-fit", "-no-fit"])]),
    foreign(Ignored(FITTING), &[groups::FIT_CTX]),
    foreign(Ignored(UNIFIED), &[groups::SPLIT_CACHE]),
    foreign(Ignored(UNIFIED), &[groups::CELLS_PER_SLOT]),
    foreign(Ignored(DRAFTING), &[groups::DRAFT_MODEL]),
    foreign(
        Translated("--model-draft", repository),
        &[groups::DRAFT_HF_REPO],
    ),
    foreign(Ignored(DRAFTING), &[groups::DRAFT_PLACEMENT]),
    foreign(Ignored(DRAFTING), &[groups::DRAFT_OVERRIDES]),
    foreign(Ignored(DRAFTING), &[groups::DRAFT_CPU_MOE]),
    foreign(Means("--spec-draft-n-max"), &[groups::DRAFT_MAX]),
    foreign(
        Ignored("thresholds for drafts do not change memory"),
        &[groups::DRAFT_THRESHOLDS],
    ),
    foreign(
        Ignored("drafting itself is not planned; --spec-type draft-mtp plans the file's blocks"),
        &[groups::DRAFT_DEFAULTS],
    ),
    foreign(
        Ignored("drafts from earlier text do not use device memory"),
        &[groups::NGRAM_DRAFTS],
    ),
    foreign(
        Unplanned(BESIDE),
        &[
            groups::MMPROJ,
            groups::MMPROJ_URL,
            groups::ADAPTERS,
            named(One, &["--lora-base"]),
        ],
    ),
    foreign(Unplanned(BESIDE), &[groups::CONTROL_VECTOR_RANGE]),
    foreign(Unplanned(BESIDE), &[groups::MMPROJ_SWITCHES]),
    foreign(Unplanned(BESIDE), &[groups::MMPROJ_SETTINGS]),
    foreign(
        Unplanned(POSITIONS),
        &[
            groups::ROPE_SCALING,
            groups::ROPE_SCALE,
            groups::ROPE_FREQ_BASE,
            groups::ROPE_FREQ_SCALE,
            groups::YARN_ORIG_CTX,
            groups::YARN_EXT_FACTOR,
            groups::YARN_ATTN_FACTOR,
            groups::YARN_BETA_SLOW,
            groups::YARN_BETA_FAST,
            groups::GROUP_ATTENTION,
        ],
    ),
    foreign(
        Refused(
            "listing devices is a subcommand",
            "`tpc devices` lists the cards that tpc knows, and this machine's devices",
        ),
        &[groups::LIST_DEVICES],
    ),
    foreign(
        Ignored("the host computes with the tensors that it holds"),
        &[groups::OP_OFFLOAD, named(Switch, &["-nopo"])],
    ),
    // llama.cpp: options that do not change a plan.
    foreign(Ignored(THREADS), &[groups::THREADS]),
    foreign(Ignored(THREADS), &[groups::THREAD_PLACEMENT]),
    foreign(Ignored(LENGTH), &[groups::LENGTH]),
    foreign(
        Ignored(LOADING),
        &[
            groups::LOADING_SWITCHES,
            named(Switch, &["-dio", "--direct-io", "-ndio", "--no-direct-io"]),
        ],
    ),
    foreign(Ignored(LOADING), &[groups::LOADING]),
    foreign(
        Unplanned(SAMPLING),
        &[groups::SAMPLERS, groups::IK_SAMPLERS],
    ),
    foreign(Unplanned(SAMPLING), &[groups::PENALTIES]),
    foreign(Unplanned(SAMPLING), &[groups::GRAMMAR]),
    foreign(Unplanned(SAMPLING), &[groups::SAMPLING_SWITCHES]),
    foreign(Unplanned(CHAT), &[groups::PROMPT]),
    foreign(Unplanned(CHAT), &[groups::REASONING]),
    foreign(Ignored(CHAT), &[groups::CHAT_MODES]),
    foreign(Ignored(CHAT), &[groups::CHAT_SWITCHES]),
    foreign(Ignored(SERVER), &[groups::SERVER]),
    foreign(Ignored(SERVER), &[groups::SERVER_SWITCHES]),
    foreign(Ignored(CACHED), &[groups::PROMPT_CACHE]),
    foreign(
        Ignored(CACHED),
        &[groups::PROMPT_CACHE_SWITCHES, groups::PROMPT_CACHE_FILE],
    ),
    foreign(Ignored(LOGS), &[groups::LOGS]),
    foreign(Ignored(LOGS), &[groups::LOG_COLORS]),
    foreign(
        Ignored(LOGS),
        &[groups::LOG_SWITCHES, groups::BENCH_PROGRESS],
    ),
    foreign(
        Refused(
            "tpc does not answer questions about llama.cpp",
            "`tpc --help` and `tpc COMMAND --help` list tpc's options",
        ),
        &[groups::QUESTIONS],
    ),
    // llama-bench.
    foreign(Ignored(LOADING), &[groups::BENCH_MMAP]),
    foreign(
        Ignored("tpc computes the last token's logits, and embeddings are not supported"),
        &[groups::BENCH_EMBEDDINGS],
    ),
    foreign(
        Ignored("results go only to standard output, messages to standard error"),
        &[groups::BENCH_STDERR],
    ),
    foreign(Ignored("tests run without a delay"), &[groups::BENCH_DELAY]),
    // ik_llama.cpp.
    foreign(
        Ignored(
            "`-sm auto` compares groups of devices of every size; --devices N sets the number of devices",
        ),
        &[groups::IK_MAX_GPU],
    ),
    foreign(Ignored(SCHEDULE), &[groups::IK_GRAPH_SWITCHES]),
    foreign(Ignored(SCHEDULE), &[groups::IK_GRAPH]),
    foreign(
        Ignored("the file decides if attention has a latent cache; tpc does not change it"),
        &[groups::IK_MLA],
    ),
    foreign(
        Ignored("tpc computes every expert that the router selects"),
        &[groups::IK_EXPERT_REDUCTION],
    ),
    foreign(
        Ignored("tensors keep the file's types and layout"),
        &[groups::IK_MERGING],
    ),
    foreign(
        Ignored("quantised keys and values are always rotated"),
        &[groups::IK_CACHE_ROTATION],
    ),
    foreign(NO_FLASH, &[groups::IK_NO_FLASH_ATTENTION]),
    // vLLM, SGLang, LM Studio, Ollama.
    foreign(
        Refused(
            "tpc sets parallelism by the number of devices and the split mode",
            "write --devices N -sm tensor",
        ),
        &[named(
            One,
            &["-tp", "--tp", "--tp-size", "--tensor-parallel-size"],
        )],
    ),
    foreign(
        Refused(
            "tpc sets parallelism by the number of devices and the split mode",
            "write --devices N -sm layer",
        ),
        &[named(
            One,
            &["-pp", "--pp", "--pp-size", "--pipeline-parallel-size"],
        )],
    ),
    foreign(
        Refused(
            "--devices sets the number of devices",
            "write --devices N, such as --devices 2, or name cards: --devices 2x3090",
        ),
        &[named(One, &["--gpus", "--gpu"])],
    ),
    foreign(
        Refused(
            "tpc reserves bytes, not a share of memory",
            "reserve memory on each device with --reserve BYTES, such as --reserve 2G",
        ),
        &[named(
            One,
            &["--gpu-memory-utilization", "--mem-fraction-static"],
        )],
    ),
    foreign(
        Refused(
            "keys and values each have a type",
            "write -ctk TYPE -ctv TYPE, such as -ctk q8_0 -ctv q8_0",
        ),
        &[named(One, &["--kv-cache-dtype", "--cache-type", "-ct"])],
    ),
    foreign(
        Refused(
            "an answer ends at the model's end token, or after -n tokens",
            "leave out --stop, or write -n N",
        ),
        &[named(One, &["--stop"])],
    ),
    foreign(
        Refused(
            "tpc does not quantise a GGUF file",
            "plan a file with the quantisation that you want",
        ),
        &[named(One, &["--quantization", "--dtype", "--quant"])],
    ),
];

const NO_FLASH: Effect = Ignored("attention is always fused");

fn split_mode(value: &str) -> Translation {
    let other = |why| Translation::Other("tensor".to_owned(), why);
    match value {
        "row" => {
            other("llama.cpp's `row` splits only matrices; tpc's `tensor` splits whole layers")
        }
        "graph" => other("ik_llama.cpp's `graph` is tpc's `tensor`"),
        "attn" => {
            other("ik_llama.cpp's `attn` splits only attention; tpc's `tensor` splits whole layers")
        }
        _ => Translation::Same,
    }
}

/// Translates the number of sequences. With `-1` or `auto`, llama-server chooses the number.
fn parallel(value: &str) -> Translation {
    match value {
        "-1" | "auto" => Translation::Dropped("a server chooses it; the plan is for one sequence"),
        _ => Translation::Same,
    }
}

/// Translates llama.cpp's device names: `CUDA0,CUDA1`, `Vulkan0`, `none`.
fn devices(value: &str) -> Translation {
    let names: Vec<&str> = value.split(',').map(str::trim).collect();
    let number = |name: &str| {
        name.strip_prefix("cuda")
            .is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let lower: Vec<String> = names.iter().map(|n| n.to_ascii_lowercase()).collect();
    let why = "tpc uses its own device names";
    if lower == ["none"] {
        return Translation::Other("cpu".to_owned(), why);
    }
    if lower.iter().all(|n| number(n)) {
        let list: Vec<String> = lower.iter().map(|n| n.replace("cuda", "cuda:")).collect();
        return Translation::Other(list.join(","), why);
    }
    match names.iter().any(|n| n.is_empty()) {
        true => Translation::Same,
        false => Translation::Other(names.len().to_string(), "tpc counts the named devices"),
    }
}

/// Translates MiB. From a list, takes the largest value.
fn repository(value: &str) -> Translation {
    Translation::Other(
        format!("hf://{value}"),
        "the draft model is in a repository",
    )
}

fn mebibytes(value: &str) -> Translation {
    let numbers: Option<Vec<u64>> = value.split(',').map(|n| n.trim().parse().ok()).collect();
    match numbers.and_then(|n| n.into_iter().max()?.checked_mul(1 << 20)) {
        Some(bytes) => Translation::Other(
            bytes.to_string(),
            "the value is the free memory per device, in MiB",
        ),
        None => Translation::Same,
    }
}

/// Translates a number of layers into overrides that keep the layers' dense feed-forward weights on the host.
fn dense_on_host(value: &str) -> Translation {
    match value.parse::<u64>() {
        Ok(0) | Err(_) => {
            Translation::Dropped("the value keeps all feed-forward weights on the devices")
        }
        Ok(n) => Translation::Other(
            tpc_ggml::llama_cpp::ffn_on_host(n),
            "the feed-forward weights of these layers stay on the host",
        ),
    }
}
