//! The options of other programs with their meanings in tpc: an entry per option, or per group of similar options.
//!
//! A subcommand's own options take precedence over this table. A new option is one line here.

use tpc_ggml::llama_cpp::Arity::{self, One, Switch};
use tpc_ggml::llama_cpp::{OptionSpec, Setting, groups};

/// The meaning of another program's option in tpc.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    /// The model: a file, or an address.
    Model,
    /// A repository of Hugging Face, `USER/NAME:QUANT`.
    Repository,
    /// A file of the repository.
    RepositoryFile,
    /// An option of tpc, with the same value.
    Means(&'static str),
    /// An option of tpc with another value, which the function makes.
    Translated(&'static str, fn(&str) -> Translation),
    /// No effect, for this reason.
    Ignored(&'static str),
    /// No effect on a plan, for this reason. Commands that generate text refuse it, because it would change their text.
    Unplanned(&'static str),
    /// A mistake: the message, and the cure.
    Refused(&'static str, &'static str),
}

/// The value of an option of tpc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Translation {
    /// The value as it is.
    Same,
    /// Another value, with the reason.
    Other(String, &'static str),
    /// No value: the option is left out, for this reason.
    Dropped(&'static str),
}

/// Options of other programs that have the same meaning in tpc.
#[derive(Debug)]
pub(super) struct ForeignOption {
    /// At least one option; all take the same number of values.
    options: &'static [OptionSpec],
    /// Their meaning in tpc.
    pub(super) effect: Effect,
}

impl ForeignOption {
    /// Returns their spellings.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.options.iter().flat_map(|o| o.names).copied()
    }

    /// Returns the number of values that they take.
    pub(super) fn arity(&self) -> Arity {
        self.options[0].arity
    }
}

const fn foreign(effect: Effect, options: &'static [OptionSpec]) -> ForeignOption {
    ForeignOption { options, effect }
}

/// Describes spellings that llama.cpp's programs do not have, or that alone differ in meaning from the rest of their option.
const fn named(arity: Arity, names: &'static [&'static str]) -> OptionSpec {
    OptionSpec {
        names,
        env: "",
        arity,
        setting: Setting::Other,
    }
}

use Effect::{Ignored, Means, Model, Refused, Repository, RepositoryFile, Translated, Unplanned};

pub(super) const THREADS: &str = "threads have no influence on a plan";
pub(super) const SAMPLING: &str = "sampling does not change a plan";
pub(super) const LENGTH: &str =
    "a plan is for one token and one batch; --depth says how full the cache is";
pub(super) const LOADING: &str = "how a file is loaded has no influence on a plan";
pub(super) const SERVER: &str = "a server's settings have no influence on a plan";
pub(super) const CHAT: &str = "the text has no influence on a plan";
const LOGS: &str = "tpc has no such log";
pub(super) const FITTING: &str = "a plan that does not fit says so, with options that do (TPC0300)";
pub(super) const POSITIONS: &str =
    "positions are scaled without changing a size; -c is the context";
pub(super) const DRAFTING: &str = "tpc plan -md FILE counts a draft with a file of its own; --spec-type draft-mtp plans the model's own blocks";
pub(super) const BESIDE: &str = "tpc plan counts files beside the model: --mmproj, --lora, --control-vector; set the bytes of others aside with --reserve";
const SCHEDULE: &str = "tpc decides itself in which order and by which kernels ops run";
pub(super) const CACHED: &str = "prompts that are kept have no influence on a plan";
const UNIFIED: &str = "-c is the cells of all sequences together, each of which has its part";

/// Every option that other programs have and tpc does not, and tpc options whose values have other names there.
pub(super) const FOREIGN_OPTIONS: &[ForeignOption] = &[
    // llama.cpp: options that change a plan.
    foreign(Model, &[groups::MODEL, groups::MODEL_URL]),
    foreign(Repository, &[groups::HF_REPO]),
    foreign(RepositoryFile, &[groups::HF_FILE]),
    foreign(
        Refused(
            "Docker's registry is not read",
            "download the model, and give its file: tpc plan MODEL.gguf",
        ),
        &[groups::DOCKER_REPO],
    ),
    foreign(
        Refused(
            "the file is planned as it is",
            "write the change into a copy with llama.cpp's gguf_set_metadata.py, and plan that",
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
        Ignored("the cache is on the devices anyway; -nkvo keeps it on the host"),
        &[groups::KV_OFFLOAD],
    ),
    foreign(
        Ignored(
            "a batch is computed in parts of --ubatch-size tokens, which decide memory and speed",
        ),
        &[groups::BATCH],
    ),
    foreign(Ignored(FITTING), &[groups::FIT]),
    foreign(Ignored(FITTING), &[named(Switch, &["--no-fit", "-no-fit"])]),
    foreign(Ignored(FITTING), &[groups::FIT_CTX]),
    foreign(Ignored(UNIFIED), &[groups::SPLIT_CACHE]),
    foreign(Ignored(UNIFIED), &[groups::CELLS_PER_SLOT]),
    foreign(
        Ignored(DRAFTING),
        &[groups::DRAFT_MODEL, groups::DRAFT_HF_REPO],
    ),
    foreign(Ignored(DRAFTING), &[groups::DRAFT_PLACEMENT]),
    foreign(Ignored(DRAFTING), &[groups::DRAFT_OVERRIDES]),
    foreign(Ignored(DRAFTING), &[groups::DRAFT_CPU_MOE]),
    foreign(Means("--spec-draft-n-max"), &[groups::DRAFT_MAX]),
    foreign(
        Ignored("how many tokens are drafted at least, and how sure of them, changes no memory"),
        &[groups::DRAFT_THRESHOLDS],
    ),
    foreign(
        Ignored(
            "how tokens are drafted is not planned; --spec-type draft-mtp plans the file's blocks",
        ),
        &[groups::DRAFT_DEFAULTS],
    ),
    foreign(
        Ignored("drafts from the text before take no memory of the devices"),
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
            "options have no list of devices",
            "`tpc devices` lists the cards that tpc knows, and those of this machine",
        ),
        &[groups::LIST_DEVICES],
    ),
    foreign(
        Ignored("tensors on the host are worked on there"),
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
            "options do not ask questions of llama.cpp here",
            "`tpc --help` and `tpc COMMAND --help` say what tpc takes",
        ),
        &[groups::QUESTIONS],
    ),
    // llama-bench.
    foreign(Ignored(LOADING), &[groups::BENCH_MMAP]),
    foreign(
        Ignored("logits are computed of the last token, embeddings of none"),
        &[groups::BENCH_EMBEDDINGS],
    ),
    foreign(
        Ignored("results go to standard output alone, and messages to standard error"),
        &[groups::BENCH_STDERR],
    ),
    foreign(
        Ignored("a test follows the one before at once"),
        &[groups::BENCH_DELAY],
    ),
    // ik_llama.cpp.
    foreign(
        Ignored(
            "`-sm auto` weighs groups of devices of every size itself; for N devices in all: --devices N",
        ),
        &[groups::IK_MAX_GPU],
    ),
    foreign(Ignored(SCHEDULE), &[groups::IK_GRAPH_SWITCHES]),
    foreign(Ignored(SCHEDULE), &[groups::IK_GRAPH]),
    foreign(
        Ignored(
            "the file says whether attention has a latent cache; tpc keeps that cache as it is",
        ),
        &[groups::IK_MLA],
    ),
    foreign(
        Ignored("every expert that the router draws is computed"),
        &[groups::IK_EXPERT_REDUCTION],
    ),
    foreign(
        Ignored("tensors keep the file's types and form"),
        &[groups::IK_MERGING],
    ),
    foreign(
        Ignored("keys and values that are quantised are rotated anyway"),
        &[groups::IK_CACHE_ROTATION],
    ),
    foreign(NO_FLASH, &[groups::IK_NO_FLASH_ATTENTION]),
    // vLLM, SGLang, LM Studio, Ollama.
    foreign(
        Refused(
            "vLLM's parallelism is tpc's number of devices and split mode",
            "say --devices N -sm tensor",
        ),
        &[named(
            One,
            &["-tp", "--tp", "--tp-size", "--tensor-parallel-size"],
        )],
    ),
    foreign(
        Refused(
            "vLLM's parallelism is tpc's number of devices and split mode",
            "say --devices N -sm layer",
        ),
        &[named(
            One,
            &["-pp", "--pp", "--pp-size", "--pipeline-parallel-size"],
        )],
    ),
    foreign(
        Refused(
            "the number of devices has another name",
            "say --devices N, such as --devices 2, or name them: --devices 2x3090",
        ),
        &[named(One, &["--gpus", "--gpu"])],
    ),
    foreign(
        Refused(
            "tpc counts bytes, not shares of a memory",
            "keep some of each device free with --reserve BYTES, such as --reserve 2G",
        ),
        &[named(
            One,
            &["--gpu-memory-utilization", "--mem-fraction-static"],
        )],
    ),
    foreign(
        Refused(
            "keys and values have a type each",
            "say -ctk TYPE -ctv TYPE, such as -ctk q8_0 -ctv q8_0",
        ),
        &[named(One, &["--kv-cache-dtype", "--cache-type", "-ct"])],
    ),
    foreign(
        Refused(
            "answers end where the model ends them, or after -n tokens",
            "leave it out, or say -n N",
        ),
        &[named(One, &["--stop"])],
    ),
    foreign(
        Refused(
            "a GGUF file is quantised as it is",
            "plan the file of the quantisation that you want",
        ),
        &[named(One, &["--quantization", "--dtype", "--quant"])],
    ),
];

const NO_FLASH: Effect = Ignored("attention is always fused");

/// Translates other programs' names of split modes.
fn split_mode(value: &str) -> Translation {
    let other = |why| Translation::Other("tensor".to_owned(), why);
    match value {
        "row" => {
            other("llama.cpp's `row` splits matrices alone; tpc's `tensor` splits whole layers")
        }
        "graph" => other("ik_llama.cpp's `graph` is tpc's `tensor`"),
        "attn" => other(
            "ik_llama.cpp's `attn` splits attention alone; tpc's `tensor` splits whole layers",
        ),
        _ => Translation::Same,
    }
}

/// Translates a number of sequences; a server chooses it for `-1` and `auto`.
fn parallel(value: &str) -> Translation {
    match value {
        "-1" | "auto" => Translation::Dropped("a server chooses it; the plan is for one sequence"),
        _ => Translation::Same,
    }
}

/// Translates llama.cpp's names of devices: `CUDA0,CUDA1`, `Vulkan0`, `none`.
fn devices(value: &str) -> Translation {
    let names: Vec<&str> = value.split(',').map(str::trim).collect();
    let number = |name: &str| {
        name.strip_prefix("cuda")
            .is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let lower: Vec<String> = names.iter().map(|n| n.to_ascii_lowercase()).collect();
    let why = "the devices' names are tpc's";
    if lower == ["none"] {
        return Translation::Other("cpu".to_owned(), why);
    }
    if lower.iter().all(|n| number(n)) {
        let list: Vec<String> = lower.iter().map(|n| n.replace("cuda", "cuda:")).collect();
        return Translation::Other(list.join(","), why);
    }
    match names.iter().any(|n| n.is_empty()) {
        true => Translation::Same,
        false => Translation::Other(names.len().to_string(), "they are counted"),
    }
}

/// Translates a number of MiB, or a list per device; the largest number of a list counts.
fn mebibytes(value: &str) -> Translation {
    let numbers: Option<Vec<u64>> = value.split(',').map(|n| n.trim().parse().ok()).collect();
    match numbers.and_then(|n| n.into_iter().max()?.checked_mul(1 << 20)) {
        Some(bytes) => {
            Translation::Other(bytes.to_string(), "it is MiB that stay free on each device")
        }
        None => Translation::Same,
    }
}

/// Translates a number of layers into overrides that keep their dense feed-forward weights on the host.
fn dense_on_host(value: &str) -> Translation {
    match value.parse::<u64>() {
        Ok(0) | Err(_) => {
            Translation::Dropped("it keeps the feed-forward weights of no layer on the host")
        }
        Ok(n) => Translation::Other(
            tpc_ggml::llama_cpp::ffn_on_host(n),
            "the feed-forward weights of these layers stay on the host",
        ),
    }
}
