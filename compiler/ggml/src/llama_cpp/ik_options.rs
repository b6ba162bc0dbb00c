//! The options of `ik_llama.cpp` that llama.cpp lacks or that take other arguments in llama.cpp.
//!
//! Source: `ik_llama.cpp`'s `docs/parameters.md`, and its option parsers of 2025 and 2026. tpc accepts options of all
//! releases.

use super::groups::{
    IK_CACHE_ROTATION, IK_EXPERT_REDUCTION, IK_GRAPH, IK_GRAPH_SWITCHES, IK_MAX_GPU, IK_MERGING,
    IK_MLA, IK_NO_FLASH_ATTENTION, IK_SAMPLERS,
};
use super::option_spec::{Arity, OptionSpec, Setting, option};

use Arity::{NegatedSwitch, OnOffAuto, One, Switch, Two};
use Setting as S;

/// The options of programs with the common parser, such as `llama-server` and `llama-cli`.
pub const IK_OPTIONS: &[OptionSpec] = &[
    option(S::Fit, Switch, "", &["--fit"]),
    option(S::FlashAttention, NegatedSwitch, "", &["--no-fa"]),
    IK_NO_FLASH_ATTENTION,
    option(S::Draft, One, "", &["-draft", "--draft-params"]),
    // Draft blocks in the model's own file.
    option(
        S::Speculation,
        Switch,
        "",
        &["-mtp", "--multi-token-prediction"],
    ),
    option(
        S::Adapter,
        Two,
        "",
        &["--lora-scaled", "--control-vector-scaled"],
    ),
    option(S::Other, Two, "", &["--spec-replace"]),
    option(S::Other, OnOffAuto, "", &["--context-shift"]),
    option(
        S::Other,
        One,
        "",
        &[
            // The graph, and data per device.
            "--attn-max-batch",
            "-gap",
            "--graph-attn-precision",
            "-fdn",
            "--fused-delta-net",
            "-mea",
            "--max-extra-alloc",
            "-wgt",
            "--worst-graph-tokens",
            "--fit-margin",
            "-gfm",
            "--gpu-fit-margin",
            "--prefetch-experts-threads",
            "-dsatk",
            "--dsa-top-k",
            // Caches.
            "-ictk",
            "--indexer-cache-type-k",
            "-ctk-first",
            "--cache-type-k-first",
            "-ctk-last",
            "--cache-type-k-last",
            "-ctv-first",
            "--cache-type-v-first",
            "-ctv-last",
            "--cache-type-v-last",
            "-crs",
            "--cache-ram-similarity",
            "-cram-n-min",
            "--cache-ram-n-min",
            "-ctx-ckpt",
            "-ctx-ckpt-i",
            "--ctx-checkpoints-interval",
            "-ctx-ckpt-t",
            "--ctx-checkpoints-tolerance",
            "-ctx-ckpt-e",
            "--ctx-checkpoints-eviction",
            // Drafts.
            "-ps",
            "--p-split",
            "--spec-ckpt-mode",
            "--recurrent-ckpt-mode",
            "-mtprot",
            "--mtp-requantize-output-tensor",
            "--suffix-min-match-len",
            "--suffix-max-depth",
            "--suffix-corpus",
            // Threads, samplers, templates, the server.
            "-tm",
            "--threads-mtmd",
            "--mtmd-kq-type",
            "--allowlist-pieces",
            "--allowlist-unicode-rule",
            "--allowlist-keyword",
            "--allowlist-keyword-delay",
            "--banned-n",
            "--banned-string-file",
            "--expiring-logit-bias-file",
            "--cfg-negative-prompt",
            "--cfg-negative-prompt-file",
            "--cfg-scale",
            "--reasoning-tokens",
            "--log-format",
            "-ld",
            "--logdir",
            "--sql-save-file",
            "--sqlite-zstd-ext-file",
            "--webui",
            "-nrep",
            "--n-repetitions",
        ],
    ),
    IK_SAMPLERS,
    IK_MAX_GPU,
    IK_GRAPH,
    IK_MLA,
    IK_EXPERT_REDUCTION,
    option(
        S::Other,
        Switch,
        "",
        &[
            "--no-fmoe",
            "--no-gr",
            "--no-ooae",
            "--no-fug",
            "--no-mmad",
            "--merge-up-gate-exps",
            "-rcache",
            "--rope-cache",
            "-thp",
            "--transparent-huge-pages",
            "--defer-experts",
            "--prefetch-experts",
            "-dsa",
            "--dsa",
            "-fidx",
            "--fused-indexer-topk",
            "-no-fidx",
            "--no-fused-indexer-topk",
            "--swa-compress",
            "-vq",
            "--validate-quants",
            "-dkvc",
            "--dump-kv-cache",
            "--print-overrides",
            "--spec-autotune",
            "--penalize-nl",
            "--adaptive-updt-w-cur",
            "--parallel-tool-calls",
            "--send-done",
            "--chatml",
            "--all-logits",
            "-lsim",
            "--layer-similarity",
            "--hide-imatrix",
            "--log-enable",
            "--log-new",
            "--log-append",
            "--log-test",
        ],
    ),
    IK_GRAPH_SWITCHES,
    IK_MERGING,
    IK_CACHE_ROTATION,
];

/// The options of ik_llama.cpp's `llama-bench`. Switches take 0 or 1.
pub(super) const IK_BENCH: &[OptionSpec] = &[
    option(S::Fit, One, "", &["--fit"]),
    option(
        S::Other,
        One,
        "",
        &[
            "-tgb",
            "--threads-gen-batch",
            "-mla",
            "--mla-attn",
            "-amb",
            "--attn-max-batch",
            "-gr",
            "--graph-reuse",
            "-ser",
            "--smart-expert-reduction",
            "-w",
            "--warmup",
            "-rtr",
            "--run-time-repack",
            "-cuda",
            "--cuda-params",
            "-mqkv",
            "--merge-qkv",
            "-muge",
            "--merge-up-gate-exps",
            "--merge-up-gate-experts",
            "-rcache",
            "--rope-cache",
            "-thp",
            "--transparent-huge-pages",
            "-fmoe",
            "--fused-moe",
            "-ger",
            "--grouped-expert-routing",
            "-no-fug",
            "--no-fused-up-gate",
            "-no-ooae",
            "--no-offload-only-active-experts",
            "-sas",
            "--scheduler-async",
            "--fit-margin",
            "--max-gpu",
            "--print-overrides",
            "-khad",
            "--k-cache-hadamard",
            "-vhad",
            "--v-cache-hadamard",
            "-smgs",
            "--split-mode-graph-scheduling",
            "-grt",
            "--graph-reduce-type",
        ],
    ),
    option(S::Other, Switch, "", &["--defer-experts"]),
];

#[cfg(test)]
mod tests {
    use super::super::command::CommandLine;
    use super::super::testing::read;
    use super::*;

    fn unknown(line: &str) -> Vec<String> {
        read(line).unknown
    }

    #[test]
    fn every_spelling_belongs_to_one_option() {
        for options in [IK_OPTIONS, IK_BENCH] {
            let mut seen = std::collections::BTreeSet::new();
            for name in options.iter().flat_map(|f| f.names) {
                assert!(name.starts_with('-') && seen.insert(name), "{name}");
            }
        }
    }

    #[test]
    fn lines_of_its_users_are_read() {
        for line in [
            "--fit --fit-margin 6000 --gpu-fit-margin 0,3072 --context-shift off -cmoe -c 65536",
            "-sm graph -smgs -muge -mqkv -khad -amb 512 -mla 3 -ger -fa on -np 1",
            "-rtr -fmoe -ser 6,1 -op 27,0,29,0 -cuda fa-offset=0.5 -grt q8_0 -mea 128 -wgt 1",
            "-mtp --draft-max 3 --spec-type mtp:n_max=2 -ctkd q8_0 -ictk q8_0 -cram 16384 -crs 0.6",
            "-fa -rtr --no-mmap --webui llamacpp -vq --lora-scaled a.gguf 0.5",
        ] {
            let line = format!("ik_llama-server {line}");
            assert_eq!(unknown(&line), Vec::<String>::new(), "{line}");
        }
        let bench =
            "ik_llama.cpp/build/bin/llama-bench -fmoe 1 -rtr 1 -mla 3 -amb 512 --fit 1 -tgb 4,16";
        assert_eq!(unknown(bench), Vec::<String>::new());
        assert_eq!(unknown("ik_llama-server --fit-mragin 6"), ["--fit-mragin"]);
        assert_eq!(unknown("llama-server --fit-margin 6"), ["--fit-margin"]);
    }

    #[test]
    fn arguments_are_those_of_its_programs() {
        let value = |line: &str, setting| {
            let line: CommandLine = read(line);
            line.value(setting).map(str::to_owned)
        };
        let fit = value("ik_llama-server --fit -c 4096", S::Fit);
        assert_eq!(fit.as_deref(), Some("on"));
        let context = value("ik_llama-server --fit -c 4096", S::CtxSize);
        assert_eq!(context.as_deref(), Some("4096"));
        let context = value("ik_llama-server --context-shift -c 4096", S::CtxSize);
        assert_eq!(context.as_deref(), Some("4096"));
        let drafts = value(
            "ik_llama-server --spec-type mtp:n_max=2,p_min=0.5",
            S::Speculation,
        );
        assert_eq!(drafts.as_deref(), Some("draft-mtp"));
        let drafts = value("ik_llama-server -mtp", S::Speculation);
        assert_eq!(drafts.as_deref(), Some("draft-mtp"));
    }
}
