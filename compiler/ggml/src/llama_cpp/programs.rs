use serde::{Deserialize, Serialize};

use super::groups::{
    BENCH_DELAY, BENCH_EMBEDDINGS, BENCH_MMAP, BENCH_PROGRESS, BENCH_STDERR, PROMPT_CACHE_FILE,
};
use super::ik_options::{IK_BENCH, IK_OPTIONS};
use super::option_spec::{Arity, OptionSpec, Setting, option};
use tpc_diag::suggest;

use Arity::{One, Switch};
use Setting as S;

/// A kind of program: a group of programs with the same options and defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `llama-server`, `llama-cli` and others. The default context is the model's context.
    General,
    /// `llama-bench`. Options take lists. The context has the size of the largest test.
    Bench,
    /// `llama-perplexity` and `llama-imatrix`, which fill a logical batch with sequences of 512 tokens.
    Chunks,
}

/// The project of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Maker {
    /// llama.cpp.
    #[serde(rename(serialize = "llama.cpp"))]
    LlamaCpp,
    /// ik_llama.cpp.
    #[serde(rename(serialize = "ik_llama.cpp"))]
    IkLlamaCpp,
}

impl Maker {
    /// Returns the project's name.
    pub const fn name(self) -> &'static str {
        match self {
            Maker::LlamaCpp => "llama.cpp",
            Maker::IkLlamaCpp => "ik_llama.cpp",
        }
    }
}

fn bare(name: &str) -> &str {
    let name = name.strip_suffix(".exe").unwrap_or(name);
    name.strip_prefix("ik_").unwrap_or(name)
}

/// The program that has the other programs as subcommands.
const ALL_IN_ONE: &str = "llama";

const NAMES: &str = "\
    llama-server llama-cli llama-completion llama-bench llama-perplexity llama-imatrix llama-run llama-mtmd-cli llama-tts \
    llama-batched-bench llama-cvector-generator llama-export-lora llama-tokenize llama-fit-params llama-batched \
    llama-simple llama-simple-chat llama-speculative llama-speculative-simple llama-lookup llama-lookup-create \
    llama-lookup-merge llama-lookup-stats llama-lookahead llama-parallel llama-passkey llama-retrieval \
    llama-save-load-state llama-embedding llama-eval-callback llama-diffusion-cli llama-finetune llama-idle llama-debug \
    llama-gritlm llama-logits llama-results llama-infill llama-llava-cli llama-minicpmv-cli llama-gemma3-cli \
    llama-qwen2vl-cli llama-sweep-bench llama-app llama-quantize llama-gguf llama-gguf-split llama-gguf-hash llama-box \
    main server perplexity imatrix embedding simple speculative batched-bench parallel lookup lookahead infill finetune \
    sweep-bench";

impl Program {
    /// Returns the program with this file name. Build suffixes as in `llama-server-b6123` or `main-cuda` are ignored.
    pub(super) fn of(name: &str) -> Option<Program> {
        let bare = bare(name);
        let is = |known: &str| {
            let rest = bare.strip_prefix(known);
            rest.is_some_and(|r| r.is_empty() || r.starts_with(['-', '_', '.']))
        };
        let known = NAMES.split_whitespace().find(|n| is(n));
        // Names of other programs also begin with `llama`.
        if known.is_none() && bare != ALL_IN_ONE {
            return None;
        }
        let has = |part: &str| bare.contains(part);
        Some(match () {
            () if has("bench") && !has("batched") && !has("sweep") => Program::Bench,
            () if has("perplexity") || has("imatrix") => Program::Chunks,
            () => Program::General,
        })
    }

    pub(super) fn nearest(name: &str) -> Option<&'static str> {
        suggest::nearest(bare(name), NAMES.split_whitespace())
    }

    /// Returns the program's options. Options of ik_llama.cpp come first, because some take other arguments in
    /// llama.cpp.
    pub fn options(self, maker: Maker) -> impl Iterator<Item = &'static OptionSpec> {
        let (own, shared, of_ik): (&[OptionSpec], &[OptionSpec], &[OptionSpec]) = match self {
            Program::Bench => (BENCH, &[], IK_BENCH),
            Program::General | Program::Chunks => (super::OPTIONS, OTHERS, IK_OPTIONS),
        };
        let first: &[OptionSpec] = match maker {
            Maker::LlamaCpp => &[],
            Maker::IkLlamaCpp => of_ik,
        };
        first.iter().chain(own).chain(shared)
    }
}

/// The options of all programs except the server and the CLI.
const OTHERS: &[OptionSpec] = &[
    option(
        S::Other,
        Switch,
        "",
        &[
            "--check",
            "--dflash",
            "--diffusion-visual",
            "--eagle3",
            "--embd-gemma-default",
            "--fim-qwen-1.5b-default",
            "--fim-qwen-14b-spec",
            "--fim-qwen-30b-default",
            "--fim-qwen-3b-default",
            "--fim-qwen-7b-default",
            "--fim-qwen-7b-spec",
            "--gpt-oss-120b-default",
            "--gpt-oss-20b-default",
            "--hellaswag",
            "--ids",
            "--in-prefix-bos",
            "--kl-divergence",
            "--mtp",
            "--nextn",
            "--multiple-choice",
            "--no-bos",
            "--no-parse-special",
            "--no-ppl",
            "--parse-special",
            "--ppl",
            "--process-output",
            "--save-logits",
            "--show-count",
            "--show-statistics",
            "--stdin",
            "--verbose-prompt",
            "--vision-gemma-12b-default",
            "--vision-gemma-4b-default",
            "--winogrande",
            "-pps",
            "-tgs",
        ],
    ),
    PROMPT_CACHE_FILE,
    option(
        S::Other,
        One,
        "",
        &[
            "--attention",
            "--chunk",
            "--chunk-separator",
            "--chunk-size",
            "--chunks",
            "--cls-separator",
            "--context-file",
            "--cpu-mask-batch-draft",
            "--cpu-mask-draft",
            "--cpu-range-batch-draft",
            "--cpu-range-draft",
            "--cpu-strict-batch-draft",
            "--cpu-strict-draft",
            "--diffusion-add-gumbel-noise",
            "--diffusion-alg-temp",
            "--diffusion-algorithm",
            "--diffusion-block-length",
            "--diffusion-cfg-scale",
            "--diffusion-eps",
            "--diffusion-steps",
            "--embd-output-format",
            "--embd-separator",
            "--epochs",
            "--fit-print",
            "--from-chunk",
            "--hellaswag-tasks",
            "--in-file",
            "--junk",
            "--kl-divergence-base",
            "--learning-rate",
            "--learning-rate-decay-epochs",
            "--learning-rate-min",
            "--logits-output-dir",
            "--method",
            "--multiple-choice-tasks",
            "--negative-file",
            "--optimizer",
            "--output",
            "--output-file",
            "--output-format",
            "--output-frequency",
            "--pca-batch",
            "--pca-iter",
            "--poll-batch-draft",
            "--poll-draft",
            "--pos",
            "--positive-file",
            "--ppl-output-type",
            "--ppl-stride",
            "--print-token-count",
            "--prio-batch-draft",
            "--prio-draft",
            "--save-all-logits",
            "--save-frequency",
            "--sequences",
            "--server-base",
            "--spec-draft-cpu-mask",
            "--spec-draft-cpu-mask-batch",
            "--spec-draft-cpu-range",
            "--spec-draft-cpu-range-batch",
            "--spec-draft-cpu-strict",
            "--spec-draft-cpu-strict-batch",
            "--spec-draft-poll",
            "--spec-draft-poll-batch",
            "--spec-draft-prio",
            "--spec-draft-prio-batch",
            "--spec-ngram-map-k4v-min-hits",
            "--spec-ngram-map-k4v-size-m",
            "--spec-ngram-map-k4v-size-n",
            "--spec-ngram-min-hits",
            "--spec-ngram-size-m",
            "--spec-ngram-size-n",
            "--spec-synth-len",
            "--spec-synth-rates",
            "--tensor-filter",
            "--tts-lang",
            "--tts-speaker-file",
            "--tts-voice",
            "--val-split",
            "--video",
            "--weight-decay",
            "--winogrande-tasks",
            "-Cbd",
            "-Cd",
            "-Crbd",
            "-Crd",
            "-decay-epochs",
            "-epochs",
            "-fitp",
            "-lr",
            "-lr-min",
            "-npl",
            "-npp",
            "-ns",
            "-ntg",
            "-o",
            "-ofreq",
            "-opt",
            "-ptc",
            "-val-split",
            "-wd",
        ],
    ),
];

/// `llama-bench`'s options. Most values may be lists.
const BENCH: &[OptionSpec] = &[
    option(S::Model, One, "", &["-m", "--model"]),
    option(S::Remote, One, "", &["-hf", "-hfr", "--hf-repo"]),
    option(S::Remote, One, "", &["-hff", "--hf-file"]),
    option(S::PromptTokens, One, "", &["-p", "--n-prompt"]),
    option(S::GeneratedTokens, One, "", &["-n", "--n-gen"]),
    option(S::PromptAndGenerated, One, "", &["-pg", "-gp"]),
    option(S::Depth, One, "", &["-d", "--n-depth"]),
    option(S::Batch, One, "", &["-b", "--batch-size"]),
    option(S::Ubatch, One, "", &["-ub", "--ubatch-size"]),
    option(S::CacheK, One, "", &["-ctk", "--cache-type-k"]),
    option(S::CacheV, One, "", &["-ctv", "--cache-type-v"]),
    option(S::GpuLayers, One, "", &["-ngl", "--n-gpu-layers"]),
    option(S::NCpuMoe, One, "", &["-ncmoe", "--n-cpu-moe"]),
    option(S::SplitMode, One, "", &["-sm", "--split-mode"]),
    option(S::MainGpu, One, "", &["-mg", "--main-gpu"]),
    option(S::NoKvOffload, One, "", &["-nkvo", "--no-kv-offload"]),
    option(S::FlashAttention, One, "", &["-fa", "--flash-attn"]),
    option(S::Devices, One, "", &["-dev", "--device"]),
    option(S::TensorSplit, One, "", &["-ts", "--tensor-split"]),
    option(S::Override, One, "", &["-ot", "--override-tensor"]),
    option(S::FitTarget, One, "", &["-fitt", "--fit-target"]),
    option(S::Rpc, One, "", &["-rpc", "--rpc"]),
    option(
        S::Other,
        One,
        "",
        &[
            "-t",
            "--threads",
            "-C",
            "--cpu-mask",
            "--cpu-strict",
            "--poll",
            "-lm",
            "--load-mode",
            "-lzm",
            "--lazy-mode",
            "--mmap",
            "-dio",
            "--direct-io",
            "--embeddings",
            "-nopo",
            "--no-op-offload",
            "--no-host",
            "--repack",
            "-r",
            "--repetitions",
            "--prio",
            "-o",
            "--output",
            "-fitc",
            "--fit-ctx",
            "-hft",
            "--hf-token",
            "--numa",
        ],
    ),
    BENCH_MMAP,
    BENCH_EMBEDDINGS,
    BENCH_STDERR,
    BENCH_DELAY,
    option(
        S::Other,
        Switch,
        "",
        &[
            "-h",
            "--help",
            "--version",
            "--list-devices",
            "-v",
            "--verbose",
            "--no-warmup",
            "--offline",
        ],
    ),
    BENCH_PROGRESS,
];
