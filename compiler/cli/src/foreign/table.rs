//! The options of other programs, and what each means here: an entry per option, or per group of options alike.
//!
//! An option that a subcommand has itself is the subcommand's; these are what remains. Adding one is a line.

use tpc_ggml::llama_cpp::Arity::{self, NegatedSwitch, OnOffAuto, One, Switch, Two};

/// What an option of another program means here.
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
    /// Nothing, for this reason.
    Ignored(&'static str),
    /// Nothing for a plan, for this reason; a command that generates text refuses it, since its text would be another.
    Unplanned(&'static str),
    /// A mistake: the finding, and what to do.
    Refused(&'static str, &'static str),
}

/// The value of an option of tpc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Translation {
    /// The value as it is.
    Same,
    /// Another value, and why.
    Other(String, &'static str),
    /// None: the option is left out, for this reason.
    Dropped(&'static str),
}

/// An option of another program.
#[derive(Debug)]
pub(super) struct ForeignOption {
    /// Its spellings, or those of options alike, with blanks between.
    names: &'static str,
    /// Its arguments.
    pub(super) arity: Arity,
    /// What it means here.
    pub(super) effect: Effect,
}

impl ForeignOption {
    /// Its spellings.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.split_whitespace()
    }
}

const fn foreign(effect: Effect, arity: Arity, names: &'static str) -> ForeignOption {
    ForeignOption {
        names,
        arity,
        effect,
    }
}

use Effect::{Ignored, Means, Model, Refused, Repository, RepositoryFile, Translated, Unplanned};

pub(super) const THREADS: &str = "threads have no influence on a plan";
pub(super) const SAMPLING: &str = "tokens are chosen after what is planned";
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

/// Every option that other programs have and tpc has not, and those of tpc whose values have other names there.
pub(super) const FOREIGN_OPTIONS: &[ForeignOption] = &[
    // llama.cpp: what is planned.
    foreign(Model, One, "-m --model -mu --model-url"),
    foreign(Repository, One, "-hf -hfr --hf-repo"),
    foreign(RepositoryFile, One, "-hff --hf-file"),
    foreign(
        Refused(
            "Docker's registry is not read",
            "download the model, and give its file: tpc plan MODEL.gguf",
        ),
        One,
        "-dr --docker-repo",
    ),
    foreign(
        Refused(
            "the file is planned as it is",
            "write the change into a copy with llama.cpp's gguf_set_metadata.py, and plan that",
        ),
        One,
        "--override-kv",
    ),
    foreign(Translated("--split-mode", split_mode), One, "--split-mode"),
    foreign(Translated("--parallel", parallel), One, "--parallel"),
    foreign(Translated("--devices", devices), One, "-dev --device"),
    foreign(
        Translated("--reserve", mebibytes),
        One,
        "-fitt --fit-target",
    ),
    foreign(
        Translated("--override-tensor", dense_on_host),
        One,
        "-ncffn --n-cpu-ffn",
    ),
    foreign(
        Means("--ctx-size"),
        One,
        "-ctx --n-ctx --n_ctx --ctx --context --context-size --context-length --max-model-len --max-seq-len",
    ),
    foreign(
        Means("--n-gpu-layers"),
        One,
        "--n_gpu_layers --num-gpu-layers --gpulayers",
    ),
    foreign(
        Ignored("the cache is on the devices anyway; -nkvo keeps it on the host"),
        Switch,
        "-kvo --kv-offload",
    ),
    foreign(
        Ignored(
            "a batch is computed in parts of --ubatch-size tokens, which decide memory and speed",
        ),
        One,
        "-b --batch-size",
    ),
    foreign(Ignored(FITTING), OnOffAuto, "-fit --fit"),
    foreign(Ignored(FITTING), Switch, "--no-fit -no-fit"),
    foreign(Ignored(FITTING), One, "-fitc --fit-ctx"),
    foreign(Ignored(UNIFIED), Switch, "-no-kvu --no-kv-unified"),
    foreign(Ignored(UNIFIED), One, "--kv-unified-per-slot"),
    foreign(
        Ignored(DRAFTING),
        One,
        "-md --model-draft --spec-draft-model -hfd -hfrd --hf-repo-draft --spec-draft-hf",
    ),
    foreign(
        Ignored(DRAFTING),
        One,
        "-devd --device-draft --spec-draft-device -ngld --gpu-layers-draft --n-gpu-layers-draft \
         --spec-draft-ngl -cd --ctx-size-draft",
    ),
    foreign(
        Ignored(DRAFTING),
        One,
        "-otd --override-tensor-draft --spec-draft-override-tensor -ncmoed --n-cpu-moe-draft \
         --spec-draft-n-cpu-moe --spec-draft-ncmoe",
    ),
    foreign(
        Ignored(DRAFTING),
        Switch,
        "-cmoed --cpu-moe-draft --spec-draft-cpu-moe",
    ),
    foreign(
        Means("--spec-draft-n-max"),
        One,
        "--draft --draft-n --draft-max",
    ),
    foreign(
        Ignored("how many tokens are drafted at least, and how sure of them, changes no memory"),
        One,
        "--draft-min --draft-n-min --spec-draft-n-min \
         --spec-draft-n-ubatch --draft-p-split --spec-draft-p-split --draft-p-min --spec-draft-p-min --spec-draft-sampling",
    ),
    foreign(
        Ignored(
            "how tokens are drafted is not planned; --spec-type draft-mtp plans the file's blocks",
        ),
        Switch,
        "--spec-default --spec-draft-backend-sampling --no-spec-draft-backend-sampling",
    ),
    foreign(
        Ignored("drafts from the text before take no memory of the devices"),
        One,
        "--spec-ngram-mod-n-min --spec-ngram-mod-n-max --spec-ngram-mod-n-match --spec-ngram-simple-size-n \
         --spec-ngram-simple-size-m --spec-ngram-simple-min-hits --spec-ngram-map-k-size-n \
         --spec-ngram-map-k-size-m --spec-ngram-map-k-min-hits -lcs --lookup-cache-static -lcd \
         --lookup-cache-dynamic",
    ),
    foreign(
        Unplanned(BESIDE),
        One,
        "-mm --mmproj -mmu --mmproj-url --lora --lora-scaled --lora-base --control-vector \
         --control-vector-scaled",
    ),
    foreign(Unplanned(BESIDE), Two, "--control-vector-layer-range"),
    foreign(
        Unplanned(BESIDE),
        Switch,
        "--mmproj-auto --no-mmproj --no-mmproj-auto --mmproj-offload --no-mmproj-offload \
         --lora-init-without-apply",
    ),
    foreign(
        Unplanned(BESIDE),
        One,
        "-mmdev --mmproj-device --image-min-tokens --image-max-tokens --mtmd-batch-max-tokens --video-fps \
         --video-timestamp-interval --video-ffmpeg-dir",
    ),
    foreign(
        Unplanned(POSITIONS),
        One,
        "--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx --yarn-ext-factor \
         --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast -gan --grp-attn-n -gaw --grp-attn-w",
    ),
    foreign(
        Refused(
            "options have no list of devices",
            "`tpc devices` lists the cards that tpc knows, and those of this machine",
        ),
        Switch,
        "--list-devices",
    ),
    foreign(
        Ignored("tensors on the host are worked on there"),
        Switch,
        "--op-offload --no-op-offload -nopo",
    ),
    // llama.cpp: what a plan does not depend on.
    foreign(
        Ignored(THREADS),
        One,
        "-t --threads -tb --threads-batch -td --threads-draft --spec-draft-threads -tbd --threads-batch-draft \
         --spec-draft-threads-batch --threads-http",
    ),
    foreign(
        Ignored(THREADS),
        One,
        "-C --cpu-mask -Cr --cpu-range --cpu-strict --prio --poll -Cb --cpu-mask-batch -Crb --cpu-range-batch \
         --cpu-strict-batch --prio-batch --poll-batch --numa",
    ),
    foreign(Ignored(LENGTH), One, "-n --predict --n-predict --keep"),
    foreign(
        Ignored(LOADING),
        Switch,
        "--mlock --mmap --no-mmap -nr --repack --no-repack --no-host --check-tensors --warmup --no-warmup \
         --offline -dio --direct-io -ndio --no-direct-io",
    ),
    foreign(
        Ignored(LOADING),
        One,
        "-lm --load-mode -lzm --lazy-mode -hft --hf-token",
    ),
    foreign(
        Unplanned(SAMPLING),
        One,
        "-s --seed --samplers --sampler-seq --sampling-seq --temp --temperature --top-k --top-p --min-p \
         --top-nsigma --top-n-sigma --xtc-probability --xtc-threshold --typical --typical-p --tfs",
    ),
    foreign(
        Unplanned(SAMPLING),
        One,
        "--repeat-last-n --repeat-penalty --presence-penalty --frequency-penalty --dry-multiplier --dry-base \
         --dry-allowed-length --dry-penalty-last-n --dry-sequence-breaker --adaptive-target --adaptive-decay \
         --dynatemp-range --dynatemp-exp --mirostat --mirostat-lr --mirostat-ent -l --logit-bias",
    ),
    foreign(
        Unplanned(SAMPLING),
        One,
        "--grammar --grammar-file -j --json-schema -jf --json-schema-file",
    ),
    foreign(
        Unplanned(SAMPLING),
        Switch,
        "--ignore-eos -bs --backend-sampling",
    ),
    foreign(
        Unplanned(CHAT),
        One,
        "-p --prompt -f --file -bf --binary-file -sys --system-prompt -sysf --system-prompt-file --image \
         --audio --in-prefix --in-suffix -r --reverse-prompt --chat-template --chat-template-file \
         --chat-template-kwargs",
    ),
    foreign(
        Unplanned(CHAT),
        One,
        "--reasoning-format --reasoning-effort --reasoning-budget --reasoning-budget-message",
    ),
    foreign(Ignored(CHAT), OnOffAuto, "-rea --reasoning -co --color"),
    foreign(
        Ignored(CHAT),
        Switch,
        "--jinja --no-jinja -e --escape --no-escape -sp --special --spm-infill -cnv --conversation -no-cnv \
         --no-conversation -st --single-turn -i --interactive -if --interactive-first -mli --multiline-input \
         --simple-io --no-display-prompt --display-prompt --reasoning-preserve \
         --no-reasoning-preserve --skip-chat-parsing --no-skip-chat-parsing --prefill-assistant \
         --no-prefill-assistant",
    ),
    foreign(
        Ignored(SERVER),
        One,
        "-a --alias --tags --host --port --path --cors-origins --cors-methods --cors-headers --api-prefix \
         --ui-config --webui-config --ui-config-file --webui-config-file --tools --tools-runtime \
         --mcp-servers-config --mcp-servers-json --api-key --api-key-file --ssl-key-file --ssl-cert-file -to \
         --timeout --sse-ping-interval --slot-save-path --media-path --models-dir --models-preset \
         --models-max --models-memory-margin --connect-code -sps --slot-prompt-similarity --sleep-idle-seconds --pooling --embd-normalize",
    ),
    foreign(
        Ignored(SERVER),
        Switch,
        "--reuse-port --connect --cors-credentials --no-cors-credentials --ui-mcp-proxy --webui-mcp-proxy \
         --no-ui-mcp-proxy --no-webui-mcp-proxy -ag --agent -no-ag --no-agent --ui --webui --no-ui --no-webui \
         --embedding --embeddings --rerank --reranking --metrics --props --slots --no-slots --models-autoload \
         --no-models-autoload -cb --cont-batching -nocb --no-cont-batching --context-shift --no-context-shift",
    ),
    foreign(
        Ignored(CACHED),
        One,
        "--cache-reuse -cram --cache-ram -ctxcp --ctx-checkpoints --swa-checkpoints -cms \
         --checkpoint-min-step --prompt-cache -dt --defrag-thold",
    ),
    foreign(
        Ignored(CACHED),
        Switch,
        "--cache-prompt --no-cache-prompt --cache-idle-slots --no-cache-idle-slots --prompt-cache-all \
         --prompt-cache-ro",
    ),
    foreign(
        Ignored(LOGS),
        One,
        "--log-file -lv --verbosity --log-verbosity --log-prompts-dir",
    ),
    foreign(Ignored(LOGS), OnOffAuto, "--log-colors"),
    foreign(
        Ignored(LOGS),
        Switch,
        "--log-disable --log-jsonl --no-log-jsonl --log-verbose --log-prefix --no-log-prefix --log-timestamps \
         --no-log-timestamps --progress --perf --no-perf --show-timings --no-show-timings",
    ),
    foreign(
        Refused(
            "options do not ask questions of llama.cpp here",
            "`tpc --help` and `tpc COMMAND --help` say what tpc takes",
        ),
        Switch,
        "--usage -cl --cache-list --completion-bash",
    ),
    // llama-bench.
    foreign(Ignored(LOADING), One, "-mmp"),
    foreign(
        Ignored("logits are computed of the last token, embeddings of none"),
        One,
        "-embd",
    ),
    foreign(
        Ignored("results go to standard output alone, and messages to standard error"),
        One,
        "-oe --output-err",
    ),
    foreign(
        Ignored("a test follows the one before at once"),
        One,
        "--delay",
    ),
    // ik_llama.cpp.
    foreign(
        Ignored(
            "`-sm auto` weighs groups of devices of every size itself; for N devices in all: --devices N",
        ),
        One,
        "--max-gpu -mgpu",
    ),
    foreign(
        Ignored(SCHEDULE),
        Switch,
        "-sas --scheduler-async -fmoe --fused-moe -no-fmoe --no-fused-moe -gr --graph-reuse -no-gr \
         --no-graph-reuse -ger --grouped-expert-routing -no-ooae --no-offload-only-active-experts -ooae \
         --offload-only-active-experts -no-fug --no-fused-up-gate -no-mmad --no-fused-mul-multiadd -smf16 \
         --split-mode-f16 -smf32 --split-mode-f32 -smgs --split-mode-graph-scheduling",
    ),
    foreign(
        Ignored(SCHEDULE),
        One,
        "-amb --attention-max-batch -cuda --cuda-params -op --offload-policy -grt --graph-reduce-type",
    ),
    foreign(
        Ignored(
            "the file says whether attention has a latent cache; tpc keeps that cache as it is",
        ),
        One,
        "-mla --mla-use --mla-attn",
    ),
    foreign(
        Ignored("every expert that the router draws is computed"),
        One,
        "-ser --smart-expert-reduction",
    ),
    foreign(
        Ignored("tensors keep the file's types and form"),
        Switch,
        "-rtr --run-time-repack -muge --merge-up-gate-experts -mqkv --merge-qkv",
    ),
    foreign(
        Ignored("keys and values that are quantised are rotated anyway"),
        Switch,
        "-khad --k-cache-hadamard -vhad --v-cache-hadamard",
    ),
    foreign(NO_FLASH, NegatedSwitch, "-no-fa --no-flash-attn"),
    // vLLM, SGLang, LM Studio, Ollama.
    foreign(
        Refused(
            "vLLM's parallelism is tpc's number of devices and split mode",
            "say --devices N -sm tensor",
        ),
        One,
        "-tp --tp --tp-size --tensor-parallel-size",
    ),
    foreign(
        Refused(
            "vLLM's parallelism is tpc's number of devices and split mode",
            "say --devices N -sm layer",
        ),
        One,
        "-pp --pp --pp-size --pipeline-parallel-size",
    ),
    foreign(
        Refused(
            "the number of devices has another name",
            "say --devices N, such as --devices 2, or name them: --devices 2x3090",
        ),
        One,
        "--gpus --gpu --num-gpus --n-gpus --num-devices --gpu-count",
    ),
    foreign(
        Refused(
            "tpc counts bytes, not shares of a memory",
            "keep some of each device free with --reserve BYTES, such as --reserve 2G",
        ),
        One,
        "--gpu-memory-utilization --mem-fraction-static",
    ),
    foreign(
        Refused(
            "keys and values have a type each",
            "say -ctk TYPE -ctv TYPE, such as -ctk q8_0 -ctv q8_0",
        ),
        One,
        "--kv-cache-dtype --cache-type -ct",
    ),
    foreign(
        Refused(
            "answers end where the model ends them, or after -n tokens",
            "leave it out, or say -n N",
        ),
        One,
        "--stop",
    ),
    foreign(
        Refused(
            "a GGUF file is quantised as it is",
            "plan the file of the quantisation that you want",
        ),
        One,
        "--quantization --dtype --quant",
    ),
];

const NO_FLASH: Effect = Ignored("attention is always fused");

/// Split modes by the names of others.
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

/// A number of sequences that a server would choose.
fn parallel(value: &str) -> Translation {
    match value {
        "-1" | "auto" => Translation::Dropped("a server chooses it; the plan is for one sequence"),
        _ => Translation::Same,
    }
}

/// Devices by llama.cpp's names: `CUDA0,CUDA1`, `Vulkan0`, `none`.
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

/// A number of MiB, or several per device, of which the largest counts.
fn mebibytes(value: &str) -> Translation {
    let numbers: Option<Vec<u64>> = value.split(',').map(|n| n.trim().parse().ok()).collect();
    match numbers.and_then(|n| n.into_iter().max()?.checked_mul(1 << 20)) {
        Some(bytes) => {
            Translation::Other(bytes.to_string(), "it is MiB that stay free on each device")
        }
        None => Translation::Same,
    }
}

/// The dense feed-forward weights of the first layers, as overrides.
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
