//! Options that llama.cpp and tpc share: spellings and arguments.

use super::option_spec::{Arity, OptionSpec, Setting, option};

use Arity::{NegatedSwitch, OnOffAuto, One, Switch, Two};
use Setting as S;

/// The model file.
pub const MODEL: OptionSpec = option(S::Model, One, "LLAMA_ARG_MODEL", &["-m", "--model"]);

/// The URL of a model.
pub const MODEL_URL: OptionSpec = option(
    S::Remote,
    One,
    "LLAMA_ARG_MODEL_URL",
    &["-mu", "--model-url"],
);

/// The Hugging Face repository of a model.
pub const HF_REPO: OptionSpec = option(
    S::Remote,
    One,
    "LLAMA_ARG_HF_REPO",
    &["-hf", "-hfr", "--hf-repo"],
);

/// The file in the Hugging Face repository.
pub const HF_FILE: OptionSpec = option(S::Remote, One, "LLAMA_ARG_HF_FILE", &["-hff", "--hf-file"]);

/// A model in a Docker registry.
pub const DOCKER_REPO: OptionSpec = option(
    S::Remote,
    One,
    "LLAMA_ARG_DOCKER_REPO",
    &["-dr", "--docker-repo"],
);

/// Metadata overrides.
pub const OVERRIDE_KV: OptionSpec = option(S::OverrideKv, One, "", &["--override-kv"]);

/// The devices.
pub const DEVICE: OptionSpec = option(S::Devices, One, "LLAMA_ARG_DEVICE", &["-dev", "--device"]);

/// Memory that llama.cpp leaves free when it chooses settings.
pub const FIT_TARGET: OptionSpec = option(S::Other, One, "", &["-fitt", "--fit-target"]);

/// The number of first layers whose feed-forward weights are on the host.
pub const N_CPU_FFN: OptionSpec = option(
    S::NCpuFfn,
    One,
    "LLAMA_ARG_N_CPU_FFN",
    &["-ncffn", "--n-cpu-ffn"],
);

/// The switches that keep KV caches on the devices.
pub const KV_OFFLOAD: OptionSpec = option(
    S::KvOffload,
    Switch,
    "LLAMA_ARG_KV_OFFLOAD",
    &["-kvo", "--kv-offload"],
);

/// Tokens per logical batch.
pub const BATCH: OptionSpec = option(S::Batch, One, "LLAMA_ARG_BATCH", &["-b", "--batch-size"]);

/// The switch that lets llama.cpp choose settings that fit into memory.
pub const FIT: OptionSpec = option(S::Fit, OnOffAuto, "LLAMA_ARG_FIT", &["-fit", "--fit"]);

/// The minimum context that llama.cpp may choose.
pub const FIT_CTX: OptionSpec = option(S::Other, One, "", &["-fitc", "--fit-ctx"]);

/// The switch for a separate cache per sequence.
pub const SPLIT_CACHE: OptionSpec = option(S::Other, Switch, "", &["-no-kvu", "--no-kv-unified"]);

/// The number of cells per sequence.
pub const CELLS_PER_SLOT: OptionSpec = option(S::Other, One, "", &["--kv-unified-per-slot"]);

/// A draft model.
pub const DRAFT_MODEL: OptionSpec = option(
    S::Draft,
    One,
    "LLAMA_ARG_SPEC_DRAFT_MODEL",
    &["-md", "--model-draft", "--spec-draft-model"],
);

/// The Hugging Face repository of a draft model.
pub const DRAFT_HF_REPO: OptionSpec = option(
    S::Draft,
    One,
    "LLAMA_ARG_SPEC_DRAFT_HF_REPO",
    &["-hfd", "-hfrd", "--hf-repo-draft", "--spec-draft-hf"],
);

/// The devices, layers and context of a draft model.
pub const DRAFT_PLACEMENT: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "-devd",
        "--device-draft",
        "--spec-draft-device",
        "-ngld",
        "--gpu-layers-draft",
        "--n-gpu-layers-draft",
        "--spec-draft-ngl",
        "-cd",
        "--ctx-size-draft",
    ],
);

/// Tensor overrides and experts of a draft model.
pub const DRAFT_OVERRIDES: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "-otd",
        "--override-tensor-draft",
        "--spec-draft-override-tensor",
        "-ncmoed",
        "--n-cpu-moe-draft",
        "--spec-draft-n-cpu-moe",
        "--spec-draft-ncmoe",
    ],
);

/// The switch that puts all experts of a draft model on the host.
pub const DRAFT_CPU_MOE: OptionSpec = option(
    S::Other,
    Switch,
    "",
    &["-cmoed", "--cpu-moe-draft", "--spec-draft-cpu-moe"],
);

/// The maximum number of drafted tokens.
pub const DRAFT_MAX: OptionSpec =
    option(S::Other, One, "", &["--draft", "--draft-n", "--draft-max"]);

/// The minimum number and probability of drafted tokens.
pub const DRAFT_THRESHOLDS: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "--draft-min",
        "--draft-n-min",
        "--spec-draft-n-min",
        "--spec-draft-n-ubatch",
        "--draft-p-split",
        "--spec-draft-p-split",
        "--draft-p-min",
        "--spec-draft-p-min",
        "--spec-draft-sampling",
    ],
);

/// Default drafts, and sampling on the device.
pub const DRAFT_DEFAULTS: OptionSpec = option(
    S::Other,
    Switch,
    "",
    &[
        "--spec-default",
        "--spec-draft-backend-sampling",
        "--no-spec-draft-backend-sampling",
    ],
);

/// Drafts that repeat earlier text.
pub const NGRAM_DRAFTS: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "--spec-ngram-mod-n-min",
        "--spec-ngram-mod-n-max",
        "--spec-ngram-mod-n-match",
        "--spec-ngram-simple-size-n",
        "--spec-ngram-simple-size-m",
        "--spec-ngram-simple-min-hits",
        "--spec-ngram-map-k-size-n",
        "--spec-ngram-map-k-size-m",
        "--spec-ngram-map-k-min-hits",
        "-lcs",
        "--lookup-cache-static",
        "-lcd",
        "--lookup-cache-dynamic",
    ],
);

/// An image or sound encoder.
pub const MMPROJ: OptionSpec = option(S::Projector, One, "LLAMA_ARG_MMPROJ", &["-mm", "--mmproj"]);

/// The URL of an encoder.
pub const MMPROJ_URL: OptionSpec = option(
    S::Projector,
    One,
    "LLAMA_ARG_MMPROJ_URL",
    &["-mmu", "--mmproj-url"],
);

/// Adapters and control vectors.
pub const ADAPTERS: OptionSpec = option(
    S::Adapter,
    One,
    "",
    &[
        "--lora",
        "--lora-scaled",
        "--control-vector",
        "--control-vector-scaled",
    ],
);

/// The layers of a control vector.
pub const CONTROL_VECTOR_RANGE: OptionSpec =
    option(S::Other, Two, "", &["--control-vector-layer-range"]);

/// Switches for loading and placing encoders.
pub const MMPROJ_SWITCHES: OptionSpec = option(
    S::Other,
    Switch,
    "",
    &[
        "--mmproj-auto",
        "--no-mmproj",
        "--no-mmproj-auto",
        "--mmproj-offload",
        "--no-mmproj-offload",
        "--lora-init-without-apply",
    ],
);

/// Settings of image and video encoders.
pub const MMPROJ_SETTINGS: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "-mmdev",
        "--mmproj-device",
        "--image-min-tokens",
        "--image-max-tokens",
        "--mtmd-batch-max-tokens",
        "--video-fps",
        "--video-timestamp-interval",
        "--video-ffmpeg-dir",
    ],
);

/// The kind of RoPE scaling.
pub const ROPE_SCALING: OptionSpec = option(
    S::RopeScaling,
    One,
    "LLAMA_ARG_ROPE_SCALING_TYPE",
    &["--rope-scaling"],
);

/// The RoPE scaling factor.
pub const ROPE_SCALE: OptionSpec = option(
    S::RopeFactor,
    One,
    "LLAMA_ARG_ROPE_SCALE",
    &["--rope-scale"],
);

/// The RoPE base.
pub const ROPE_FREQ_BASE: OptionSpec = option(
    S::Rope,
    One,
    "LLAMA_ARG_ROPE_FREQ_BASE",
    &["--rope-freq-base"],
);

/// The inverse of the RoPE scaling factor.
pub const ROPE_FREQ_SCALE: OptionSpec = option(
    S::RopeFrequency,
    One,
    "LLAMA_ARG_ROPE_FREQ_SCALE",
    &["--rope-freq-scale"],
);

/// The context before RoPE scaling, in tokens.
pub const YARN_ORIG_CTX: OptionSpec = option(
    S::YarnContext,
    One,
    "LLAMA_ARG_YARN_ORIG_CTX",
    &["--yarn-orig-ctx"],
);

/// The extrapolation factor of YaRN.
pub const YARN_EXT_FACTOR: OptionSpec = option(
    S::Rope,
    One,
    "LLAMA_ARG_YARN_EXT_FACTOR",
    &["--yarn-ext-factor"],
);

/// The attention factor of YaRN.
pub const YARN_ATTN_FACTOR: OptionSpec = option(
    S::Rope,
    One,
    "LLAMA_ARG_YARN_ATTN_FACTOR",
    &["--yarn-attn-factor"],
);

/// The number of rotations below which YaRN interpolates.
pub const YARN_BETA_SLOW: OptionSpec = option(
    S::Rope,
    One,
    "LLAMA_ARG_YARN_BETA_SLOW",
    &["--yarn-beta-slow"],
);

/// The number of rotations above which YaRN extrapolates.
pub const YARN_BETA_FAST: OptionSpec = option(
    S::Rope,
    One,
    "LLAMA_ARG_YARN_BETA_FAST",
    &["--yarn-beta-fast"],
);

/// Self-extension of the context.
pub const GROUP_ATTENTION: OptionSpec = option(
    S::Other,
    One,
    "",
    &["-gan", "--grp-attn-n", "-gaw", "--grp-attn-w"],
);

/// The switch that lists devices.
pub const LIST_DEVICES: OptionSpec = option(S::Other, Switch, "", &["--list-devices"]);

/// The switch that lets devices compute with host weights.
pub const OP_OFFLOAD: OptionSpec =
    option(S::Other, Switch, "", &["--op-offload", "--no-op-offload"]);

/// Numbers of threads.
pub const THREADS: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "-t",
        "--threads",
        "-tb",
        "--threads-batch",
        "-td",
        "--threads-draft",
        "--spec-draft-threads",
        "-tbd",
        "--threads-batch-draft",
        "--spec-draft-threads-batch",
        "--threads-http",
    ],
);

/// Cores, priorities and polling of threads.
pub const THREAD_PLACEMENT: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "-C",
        "--cpu-mask",
        "-Cr",
        "--cpu-range",
        "--cpu-strict",
        "--prio",
        "--poll",
        "-Cb",
        "--cpu-mask-batch",
        "-Crb",
        "--cpu-range-batch",
        "--cpu-strict-batch",
        "--prio-batch",
        "--poll-batch",
        "--numa",
    ],
);

/// The number of generated and kept tokens.
pub const LENGTH: OptionSpec = option(
    S::Other,
    One,
    "",
    &["-n", "--predict", "--n-predict", "--keep"],
);

/// Switches for mapping, checking and warming up.
pub const LOADING_SWITCHES: OptionSpec = option(
    S::Other,
    Switch,
    "",
    &[
        "--mlock",
        "--mmap",
        "--no-mmap",
        "-nr",
        "--repack",
        "--no-repack",
        "--no-host",
        "--check-tensors",
        "--warmup",
        "--no-warmup",
        "--offline",
    ],
);

/// The loading mode and the download token.
pub const LOADING: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "-lm",
        "--load-mode",
        "-lzm",
        "--lazy-mode",
        "-hft",
        "--hf-token",
    ],
);

/// Samplers and the seed.
pub const SAMPLERS: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "-s",
        "--seed",
        "--samplers",
        "--sampler-seq",
        "--sampling-seq",
        "--temp",
        "--temperature",
        "--top-k",
        "--top-p",
        "--min-p",
        "--top-nsigma",
        "--top-n-sigma",
        "--xtc-probability",
        "--xtc-threshold",
        "--typical",
        "--typical-p",
    ],
);

/// Samplers of ik_llama.cpp.
pub const IK_SAMPLERS: OptionSpec = option(S::Other, One, "", &["--tfs"]);

/// Penalties, and stateful samplers.
pub const PENALTIES: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "--repeat-last-n",
        "--repeat-penalty",
        "--presence-penalty",
        "--frequency-penalty",
        "--dry-multiplier",
        "--dry-base",
        "--dry-allowed-length",
        "--dry-penalty-last-n",
        "--dry-sequence-breaker",
        "--adaptive-target",
        "--adaptive-decay",
        "--dynatemp-range",
        "--dynatemp-exp",
        "--mirostat",
        "--mirostat-lr",
        "--mirostat-ent",
        "-l",
        "--logit-bias",
    ],
);

/// Grammars and schemas.
pub const GRAMMAR: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "--grammar",
        "--grammar-file",
        "-j",
        "--json-schema",
        "-jf",
        "--json-schema-file",
    ],
);

/// Sampling switches.
pub const SAMPLING_SWITCHES: OptionSpec = option(
    S::Other,
    Switch,
    "",
    &["--ignore-eos", "-bs", "--backend-sampling"],
);

/// Prompts and templates.
pub const PROMPT: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "-p",
        "--prompt",
        "-f",
        "--file",
        "-bf",
        "--binary-file",
        "-sys",
        "--system-prompt",
        "-sysf",
        "--system-prompt-file",
        "--image",
        "--audio",
        "--in-prefix",
        "--in-suffix",
        "-r",
        "--reverse-prompt",
        "--chat-template",
        "--chat-template-file",
        "--chat-template-kwargs",
    ],
);

/// Reasoning settings.
pub const REASONING: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "--reasoning-format",
        "--reasoning-effort",
        "--reasoning-budget",
        "--reasoning-budget-message",
    ],
);

/// Reasoning and colours.
pub const CHAT_MODES: OptionSpec = option(
    S::Other,
    OnOffAuto,
    "",
    &["-rea", "--reasoning", "-co", "--color"],
);

/// Chat and console switches.
pub const CHAT_SWITCHES: OptionSpec = option(
    S::Other,
    Switch,
    "",
    &[
        "--jinja",
        "--no-jinja",
        "-e",
        "--escape",
        "--no-escape",
        "-sp",
        "--special",
        "--spm-infill",
        "-cnv",
        "--conversation",
        "-no-cnv",
        "--no-conversation",
        "-st",
        "--single-turn",
        "-i",
        "--interactive",
        "-if",
        "--interactive-first",
        "-mli",
        "--multiline-input",
        "--simple-io",
        "--no-display-prompt",
        "--display-prompt",
        "--reasoning-preserve",
        "--no-reasoning-preserve",
        "--skip-chat-parsing",
        "--no-skip-chat-parsing",
        "--prefill-assistant",
        "--no-prefill-assistant",
    ],
);

/// Server settings.
pub const SERVER: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "-a",
        "--alias",
        "--tags",
        "--host",
        "--port",
        "--path",
        "--cors-origins",
        "--cors-methods",
        "--cors-headers",
        "--api-prefix",
        "--ui-config",
        "--webui-config",
        "--ui-config-file",
        "--webui-config-file",
        "--tools",
        "--tools-runtime",
        "--mcp-servers-config",
        "--mcp-servers-json",
        "--api-key",
        "--api-key-file",
        "--ssl-key-file",
        "--ssl-cert-file",
        "-to",
        "--timeout",
        "--sse-ping-interval",
        "--slot-save-path",
        "--media-path",
        "--models-dir",
        "--models-preset",
        "--models-max",
        "--models-memory-margin",
        "--connect-code",
        "-sps",
        "--slot-prompt-similarity",
        "--sleep-idle-seconds",
        "--pooling",
        "--embd-normalize",
    ],
);

/// Server switches.
pub const SERVER_SWITCHES: OptionSpec = option(
    S::Other,
    Switch,
    "",
    &[
        "--reuse-port",
        "--connect",
        "--cors-credentials",
        "--no-cors-credentials",
        "--ui-mcp-proxy",
        "--webui-mcp-proxy",
        "--no-ui-mcp-proxy",
        "--no-webui-mcp-proxy",
        "-ag",
        "--agent",
        "-no-ag",
        "--no-agent",
        "--ui",
        "--webui",
        "--no-ui",
        "--no-webui",
        "--embedding",
        "--embeddings",
        "--rerank",
        "--reranking",
        "--metrics",
        "--props",
        "--slots",
        "--no-slots",
        "--models-autoload",
        "--no-models-autoload",
        "-cb",
        "--cont-batching",
        "-nocb",
        "--no-cont-batching",
        "--context-shift",
        "--no-context-shift",
    ],
);

/// Prompt caches.
pub const PROMPT_CACHE: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "--cache-reuse",
        "-cram",
        "--cache-ram",
        "-ctxcp",
        "--ctx-checkpoints",
        "--swa-checkpoints",
        "-cms",
        "--checkpoint-min-step",
        "--prompt-cache",
        "-dt",
        "--defrag-thold",
    ],
);

/// Switches of prompt caches.
pub const PROMPT_CACHE_SWITCHES: OptionSpec = option(
    S::Other,
    Switch,
    "",
    &[
        "--cache-prompt",
        "--no-cache-prompt",
        "--cache-idle-slots",
        "--no-cache-idle-slots",
    ],
);

/// Switches of prompt cache files.
pub const PROMPT_CACHE_FILE: OptionSpec = option(
    S::Other,
    Switch,
    "",
    &["--prompt-cache-all", "--prompt-cache-ro"],
);

/// Log file and verbosity.
pub const LOGS: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "--log-file",
        "-lv",
        "--verbosity",
        "--log-verbosity",
        "--log-prompts-dir",
    ],
);

/// Log colours.
pub const LOG_COLORS: OptionSpec = option(S::Other, OnOffAuto, "", &["--log-colors"]);

/// Log and timing switches.
pub const LOG_SWITCHES: OptionSpec = option(
    S::Other,
    Switch,
    "",
    &[
        "--log-disable",
        "--log-jsonl",
        "--no-log-jsonl",
        "--log-verbose",
        "--log-prefix",
        "--no-log-prefix",
        "--log-timestamps",
        "--no-log-timestamps",
        "--perf",
        "--no-perf",
        "--show-timings",
        "--no-show-timings",
    ],
);

/// The progress of a benchmark.
pub const BENCH_PROGRESS: OptionSpec = option(S::Other, Switch, "", &["--progress"]);

/// Switches that print usage, cached models or shell completions.
pub const QUESTIONS: OptionSpec = option(
    S::Other,
    Switch,
    "",
    &["--usage", "-cl", "--cache-list", "--completion-bash"],
);

/// A benchmark's `mmap` switch.
pub const BENCH_MMAP: OptionSpec = option(S::Other, One, "", &["-mmp"]);

/// A benchmark's embedding switch.
pub const BENCH_EMBEDDINGS: OptionSpec = option(S::Other, One, "", &["-embd"]);

/// The format of a benchmark's standard error.
pub const BENCH_STDERR: OptionSpec = option(S::Other, One, "", &["-oe", "--output-err"]);

/// The pause between two tests of a benchmark.
pub const BENCH_DELAY: OptionSpec = option(S::Other, One, "", &["--delay"]);

/// The maximum number of devices of a split graph.
pub const IK_MAX_GPU: OptionSpec = option(S::Other, One, "", &["--max-gpu", "-mgpu"]);

/// Graph and fusion switches.
pub const IK_GRAPH_SWITCHES: OptionSpec = option(
    S::Other,
    Switch,
    "",
    &[
        "-sas",
        "--scheduler-async",
        "-fmoe",
        "--fused-moe",
        "-no-fmoe",
        "--no-fused-moe",
        "-gr",
        "--graph-reuse",
        "-no-gr",
        "--no-graph-reuse",
        "-ger",
        "--grouped-expert-routing",
        "-no-ooae",
        "--no-offload-only-active-experts",
        "-ooae",
        "--offload-only-active-experts",
        "-no-fug",
        "--no-fused-up-gate",
        "-no-mmad",
        "--no-fused-mul-multiadd",
        "-smf16",
        "--split-mode-f16",
        "-smf32",
        "--split-mode-f32",
        "-smgs",
        "--split-mode-graph-scheduling",
    ],
);

/// Graph settings.
pub const IK_GRAPH: OptionSpec = option(
    S::Other,
    One,
    "",
    &[
        "-amb",
        "--attention-max-batch",
        "-cuda",
        "--cuda-params",
        "-op",
        "--offload-policy",
        "-grt",
        "--graph-reduce-type",
    ],
);

/// The form of latent attention.
pub const IK_MLA: OptionSpec = option(S::Other, One, "", &["-mla", "--mla-use", "--mla-attn"]);

/// Experts to leave out.
pub const IK_EXPERT_REDUCTION: OptionSpec =
    option(S::Other, One, "", &["-ser", "--smart-expert-reduction"]);

/// Switches that repack or merge tensors while loading.
pub const IK_MERGING: OptionSpec = option(
    S::Other,
    Switch,
    "",
    &[
        "-rtr",
        "--run-time-repack",
        "-muge",
        "--merge-up-gate-experts",
        "-mqkv",
        "--merge-qkv",
    ],
);

/// Switches that rotate caches.
pub const IK_CACHE_ROTATION: OptionSpec = option(
    S::Other,
    Switch,
    "",
    &["-khad", "--k-cache-hadamard", "-vhad", "--v-cache-hadamard"],
);

/// The switch that disables fused attention.
pub const IK_NO_FLASH_ATTENTION: OptionSpec = option(
    S::FlashAttention,
    NegatedSwitch,
    "",
    &["-no-fa", "--no-flash-attn"],
);
