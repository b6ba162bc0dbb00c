//! Imports have one direction: between crates, and between the modules of each crate.

use std::path::Path;

use super::{CRATES, root, sources};

/// Returns the crates of this workspace that a crate depends on.
fn depends(krate: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(krate).join("Cargo.toml")).expect("a manifest");
    let dependencies = text.split("[dependencies]").nth(1).unwrap_or_default();
    let dependencies = dependencies.split("\n[").next().unwrap_or_default();
    let names = dependencies
        .lines()
        .filter_map(|l| l.split(['.', ' ', '=']).next());
    let mut names: Vec<String> = names
        .filter(|n| n.starts_with("tpc"))
        .map(str::to_owned)
        .collect();
    names.sort();
    names
}

#[test]
fn dependencies_run_one_way() {
    let arrows: [(&str, &[&str]); 28] = [
        ("ir", &[]),
        ("passes", &["tpc-ir"]),
        ("runtime", &["tpc-ir"]),
        ("runtime/cpu", &["tpc-ir", "tpc-runtime"]),
        ("runtime/mpi", &["tpc-runtime"]),
        ("runtime/cuda", &["tpc-cpu", "tpc-ir", "tpc-runtime"]),
        ("runtime/cuda-emulator", &["tpc-cuda", "tpc-ir"]),
        ("runtime/testing", &["tpc-ir", "tpc-runtime"]),
        (
            "runtime/testing/devices",
            &["tpc-cuda", "tpc-cuda-emulator", "tpc-op-cases"],
        ),
        ("compiler/diag", &["tpc-ir"]),
        ("compiler/gguf", &["tpc-diag", "tpc-ir"]),
        ("compiler/text", &["tpc-diag", "tpc-gguf", "tpc-ir"]),
        ("compiler/fetch", &["tpc-diag", "tpc-gguf", "tpc-ir"]),
        (
            "compiler/store",
            &["tpc-diag", "tpc-fetch", "tpc-gguf", "tpc-ir"],
        ),
        (
            "compiler/ggml",
            &["tpc-diag", "tpc-gguf", "tpc-ir", "tpc-passes"],
        ),
        ("compiler/models", &["tpc-diag", "tpc-gguf", "tpc-ir"]),
        (
            "compiler/synth",
            &["tpc-diag", "tpc-gguf", "tpc-ir", "tpc-models"],
        ),
        (
            "compiler/core",
            &[
                "tpc-diag",
                "tpc-ggml",
                "tpc-gguf",
                "tpc-ir",
                "tpc-models",
                "tpc-passes",
            ],
        ),
        (
            "compiler/lint",
            &[
                "tpc-core",
                "tpc-diag",
                "tpc-ggml",
                "tpc-gguf",
                "tpc-ir",
                "tpc-models",
                "tpc-passes",
            ],
        ),
        (
            "compiler/numeric",
            &[
                "tpc-core",
                "tpc-diag",
                "tpc-ggml",
                "tpc-ir",
                "tpc-passes",
                "tpc-runtime",
                "tpc-synth",
            ],
        ),
        ("compiler/artefact", &["tpc-diag", "tpc-gguf", "tpc-ir"]),
        ("compiler/rpc", &["tpc-diag", "tpc-ggml", "tpc-ir"]),
        (
            "compiler/engine",
            &[
                "tpc-artefact",
                "tpc-core",
                "tpc-cpu",
                "tpc-cuda",
                "tpc-cuda-emulator",
                "tpc-diag",
                "tpc-ggml",
                "tpc-gguf",
                "tpc-ir",
                "tpc-models",
                "tpc-op-cases",
                "tpc-passes",
                "tpc-rpc",
                "tpc-runtime",
                "tpc-synth",
                "tpc-text",
            ],
        ),
        ("compiler/grammar", &["tpc-diag", "tpc-ir", "tpc-text"]),
        (
            "compiler/serve",
            &[
                "tpc-diag",
                "tpc-engine",
                "tpc-grammar",
                "tpc-ir",
                "tpc-runtime",
                "tpc-text",
            ],
        ),
        (
            "compiler/filetest",
            &[
                "tpc-core",
                "tpc-diag",
                "tpc-ggml",
                "tpc-gguf",
                "tpc-ir",
                "tpc-lint",
                "tpc-passes",
                "tpc-synth",
            ],
        ),
        (
            "compiler/cli",
            &[
                "tpc-artefact",
                "tpc-core",
                "tpc-cpu",
                "tpc-cuda",
                "tpc-diag",
                "tpc-engine",
                "tpc-fetch",
                "tpc-filetest",
                "tpc-ggml",
                "tpc-gguf",
                "tpc-grammar",
                "tpc-ir",
                "tpc-lint",
                "tpc-models",
                "tpc-mpi",
                "tpc-numeric",
                "tpc-passes",
                "tpc-rpc",
                "tpc-runtime",
                "tpc-serve",
                "tpc-store",
                "tpc-synth",
                "tpc-text",
            ],
        ),
        (
            "docs/reference",
            &["tpc", "tpc-core", "tpc-ggml", "tpc-lint", "tpc-passes"],
        ),
    ];
    for (krate, allowed) in arrows {
        for name in depends(krate) {
            assert!(
                allowed.contains(&name.as_str()),
                "{krate} must not depend on {name}"
            );
        }
    }
}

#[test]
fn the_engine_knows_no_command_line() {
    let manifest = root().join("compiler/engine/Cargo.toml");
    let text = std::fs::read_to_string(manifest).expect("a manifest");
    for name in ["clap", "miette", "indicatif", "rustyline", "signal-hook"] {
        assert!(!text.contains(name), "tpc-engine depends on {name}");
    }
}

#[test]
fn only_numeric_the_engine_and_the_command_line_know_the_runtime() {
    let joins = [
        "runtime/cpu",
        "runtime/cuda",
        "runtime/cuda-emulator",
        "runtime/mpi",
        "runtime/testing",
        "compiler/numeric",
        "compiler/engine",
        "compiler/serve",
        "compiler/cli",
        "tests",
    ];
    for krate in CRATES {
        let knows = depends(krate).iter().any(|n| n == "tpc-runtime");
        assert!(
            !knows || joins.contains(&krate),
            "{krate} names the runtime"
        );
    }
}

/// The top-level modules of every crate. Each imports only from modules before it. The definitions in `lib.rs` come
/// before all modules.
const MODULES: [(&str, &[&str]); 28] = [
    (
        "docs/reference",
        &["markdown", "codes", "lints", "options", "cards", "rules"],
    ),
    (
        "ir",
        &[
            "random", "cells", "code", "dims", "dtype", "entity", "interval", "window", "place",
            "types", "sharding", "op", "factor", "graph", "budget", "resize", "text", "verify",
            "program",
        ],
    ),
    (
        "passes",
        &[
            "gcd",
            "users",
            "lookahead",
            "layers",
            "machine",
            "place",
            "factors",
            "rebuild",
            "cells",
            "plan",
            "shard",
            "rewrite",
            "lower",
            "canonicalise",
            "prove",
            "layout",
            "cover",
            "schedule",
            "buffers",
            "assemble",
            "footprint",
            "link_bytes",
            "bits",
        ],
    ),
    (
        "runtime",
        &[
            "codes",
            "quant",
            "error",
            "tensor",
            "best",
            "checksum",
            "slot",
            "states",
            "frame",
            "memories",
            "transfers",
            "run",
            "profile",
            "launch_work",
            "executor",
            "weights",
            "host",
            "ranks",
            "reference",
            "session",
        ],
    ),
    (
        "runtime/cpu",
        &[
            "error",
            "pages",
            "pieces",
            "core_sets",
            "pin",
            "bell",
            "crowd",
            "view",
            "worker",
            "team",
            "simd",
            "math",
            "product",
            "ceilings",
            "lanes",
            "blocks",
            "elements",
            "launch",
            "ops",
            "kernel",
            "target",
            "executor",
        ],
    ),
    ("runtime/mpi", &["calls", "shared", "pulse", "world"]),
    (
        "runtime/cuda",
        &[
            "codes",
            "planes",
            "kernels",
            "nvrtc",
            "driver",
            "dump",
            "replay",
            "executor",
            "step_model",
        ],
    ),
    (
        "runtime/cuda-emulator",
        &[
            "abi",
            "random",
            "fault",
            "fiber",
            "compiler",
            "options",
            "image",
            "race",
            "memory",
            "block",
            "graph",
            "access_checker",
            "run_state",
            "thread",
            "copies",
            "calls",
            "block_runner",
            "scheduler",
            "driver",
            "faulty_driver",
            "failing_driver",
        ],
    ),
    (
        "runtime/testing",
        &["random", "skip", "cases", "stored", "compare", "suite"],
    ),
    (
        "runtime/testing/devices",
        &["named", "counting_driver", "cubins", "driver"],
    ),
    (
        "compiler/diag",
        &[
            "codes",
            "diagnostic",
            "entity",
            "excerpt",
            "format_version",
            "message",
            "suggest",
            "verdict",
            "visible",
        ],
    ),
    (
        "compiler/gguf",
        &[
            "codes",
            "lookalike",
            "names",
            "tensor_name",
            "error",
            "cursor",
            "strings",
            "value",
            "metadata",
            "getters",
            "header",
            "split",
            "tensor_table",
            "parser",
            "range",
            "file",
            "writer",
        ],
    ),
    (
        "compiler/text",
        &[
            "codes",
            "index",
            "byte_level",
            "merge",
            "trie",
            "vocabulary",
            "partition",
            "pre",
            "models",
            "tokenizer",
            "detokenizer",
            "tools",
            "chat",
            "sampling",
        ],
    ),
    (
        "compiler/fetch",
        &[
            "codes",
            "limits",
            "content_range",
            "address",
            "status",
            "client",
            "source",
            "transfer",
        ],
    ),
    (
        "compiler/store",
        &[
            "codes",
            "walk",
            "choose",
            "repository",
            "manifest",
            "stores",
            "entry",
            "hub_cache",
            "flat",
            "ollama",
            "lm_studio",
            "find",
            "list",
            "hub_endpoint",
            "lock",
            "space",
            "token",
            "download",
        ],
    ),
    (
        "compiler/ggml",
        &["op", "capture", "meta", "llama_cpp", "engines"],
    ),
    (
        "compiler/models",
        &[
            "codes",
            "drafters",
            "description",
            "options",
            "stretch",
            "summary",
            "towers",
            "error",
            "families",
            "size",
            "help",
            "hparams",
            "source",
            "blocks",
            "lowering",
            "expected",
        ],
    ),
    (
        "compiler/synth",
        &[
            "presets",
            "types",
            "weights",
            "spec",
            "element_types",
            "metadata",
            "parse",
            "model",
        ],
    ),
    (
        "compiler/core",
        &[
            "format",
            "golden",
            "units",
            "foreign_types",
            "cards",
            "topology",
            "placement",
            "pipeline",
            "beside",
            "calibration",
            "advice",
            "report",
            "shrink",
        ],
    ),
    (
        "compiler/lint",
        &[
            "baseline_state",
            "baseline",
            "commands",
            "configs",
            "format",
            "graphs",
            "merge",
            "policy",
            "view",
            "files",
            "plans",
        ],
    ),
    (
        "compiler/numeric",
        &["feed", "need", "weights", "difference", "compare", "bisect"],
    ),
    (
        "compiler/artefact",
        &[
            "codes",
            "entry_defect",
            "error",
            "archive",
            "digest",
            "kernels",
            "manifest",
            "artefact",
            "depfile",
        ],
    ),
    (
        "compiler/rpc",
        &[
            "codes",
            "version",
            "refusal",
            "limits",
            "protocol",
            "remote",
            "fields",
            "tensor",
            "graph",
            "request",
            "buffers",
            "chunks",
            "stored",
            "device",
            "connection",
            "server",
            "capture",
        ],
    ),
    (
        "compiler/engine",
        &[
            "codes",
            "error",
            "observer",
            "batch_shapes",
            "devices",
            "artefact",
            "weights",
            "ranks",
            "executor",
            "rank_executor",
            "damaged",
            "prepared",
            "loader",
            "vocabulary",
            "logits",
            "embed",
            "generate",
            "prefix",
            "perplexity",
            "session_file",
            "rpc",
            "doctor",
            "replay",
            "step",
        ],
    ),
    (
        "compiler/grammar",
        &[
            "codes",
            "errors",
            "limits",
            "closed",
            "schema",
            "vocabulary",
            "matcher",
            "compile",
            "gbnf",
            "grammar",
        ],
    ),
    (
        "compiler/serve",
        &[
            "codes",
            "failure",
            "error",
            "metrics",
            "admission",
            "options",
            "pulse",
            "snapshot",
            "shared",
            "model",
            "scheduler",
            "app",
            "api",
            "http",
            "server",
        ],
    ),
    (
        "compiler/filetest",
        &[
            "command",
            "frontend",
            "expectation",
            "case",
            "outcome",
            "planning",
            "memory",
            "lint",
            "program",
            "run",
        ],
    ),
    (
        "compiler/cli",
        &[
            "codes",
            "catalogue",
            "progress",
            "output",
            "values",
            "engine_memory_args",
            "foreign",
            "input",
            "config",
            "memory",
            "args",
            "artefact",
            "completions",
            "doctor",
            "devices",
            "models",
            "explain",
            "filetest",
            "inspect",
            "man",
            "synth",
            "ranks",
            "execution",
            "replay",
            "kernels",
            "check",
            "compile",
            "eval",
            "generation",
            "run",
            "serve",
            "bench",
            "perplexity",
            "source",
            "tokenize",
            "dump",
            "clients",
            "beside",
            "lint",
            "plan",
            "rpc",
            "verify",
            "bisect",
            "schema",
            "advise",
        ],
    ),
];

const PASSES: [(&str, &[&str]); 23] = [
    ("gcd", &[]),
    ("users", &[]),
    ("lookahead", &[]),
    ("layers", &[]),
    ("machine", &[]),
    ("place", &["layers", "machine"]),
    ("factors", &["gcd", "place", "users"]),
    ("rebuild", &["factors", "place"]),
    ("cells", &["factors", "gcd", "place", "rebuild", "users"]),
    (
        "plan",
        &[
            "cells", "factors", "gcd", "layers", "machine", "place", "rebuild", "users",
        ],
    ),
    ("shard", &["factors", "plan"]),
    ("rewrite", &["layers", "machine"]),
    ("lower", &[]),
    ("canonicalise", &[]),
    ("prove", &["gcd"]),
    ("layout", &[]),
    ("cover", &["layout", "lookahead", "users"]),
    ("schedule", &["cover", "layout", "lookahead"]),
    ("buffers", &["layout", "schedule", "users"]),
    ("assemble", &["buffers", "cover", "layout", "schedule"]),
    ("footprint", &["assemble", "buffers"]),
    ("link_bytes", &["machine"]),
    ("bits", &[]),
];

/// Returns the code of a file, without comments and tests.
fn code(text: &str) -> String {
    let text = text
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    let lines = text.lines().filter(|l| !l.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the names that a file of `module` imports from the crate's root.
fn imported(text: &str, path: &Path) -> Vec<String> {
    let code = code(text);
    // The root is `super::` for a file at the root, `super::super::` for a file in a folder, and so on.
    let depth = match path.ends_with("mod.rs") {
        true => path.components().count() - 1,
        false => path.components().count(),
    };
    let up = "super::".repeat(depth);
    let mut names = Vec::new();
    for prefix in ["crate::", up.as_str()] {
        for (at, _) in code.match_indices(prefix) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c == ':' || c.is_alphanumeric() || c == '_') {
                continue;
            }
            let rest = &code[at + prefix.len()..];
            let list = match rest.strip_prefix('{') {
                Some(group) => group.split('}').next().unwrap_or_default(),
                None => rest
                    .split(|c: char| !c.is_alphanumeric() && c != '_')
                    .next()
                    .unwrap_or_default(),
            };
            let first = |item: &str| {
                let name = item
                    .split(|c: char| !c.is_alphanumeric() && c != '_')
                    .next();
                name.unwrap_or_default().to_owned()
            };
            names.extend(list.split(',').map(|item| first(item.trim())));
        }
    }
    names
}

/// Calls `check` with every file of a crate: its path in `src`, its top-level module, and its imports from the root.
fn each_file(krate: &str, check: &mut dyn FnMut(&Path, &str, &[String])) {
    let src = root().join(krate).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    for f in files {
        let path = f.strip_prefix(&src).expect("a file of the crate");
        let first = path.iter().next().expect("a name").to_string_lossy();
        let module = first.trim_end_matches(".rs");
        if ["lib", "main", "tests"].contains(&module) || path.iter().any(|p| p == "tests") {
            continue;
        }
        let text = std::fs::read_to_string(&f).expect("a source file");
        check(path, module, &imported(&text, path));
    }
}

#[test]
fn modules_import_one_way() {
    let mut arrows = 0;
    for (krate, order) in MODULES {
        each_file(krate, &mut |path, module, names| {
            let own = order.iter().position(|m| *m == module);
            let own = own
                .unwrap_or_else(|| panic!("{krate}/src/{module} is not in the table of modules"));
            for name in names.iter().filter(|n| *n != module) {
                let other = order.iter().position(|m| m == name);
                assert!(
                    other.is_none_or(|other| other < own),
                    "{krate}/src/{} imports crate::{name}, which stands above {module}",
                    path.display()
                );
                arrows += usize::from(other.is_some());
            }
        });
    }
    assert!(arrows > 300, "{arrows} imports were checked");
}

#[test]
fn passes_import_what_they_may() {
    let mut arrows = 0;
    each_file("passes", &mut |path, module, names| {
        let allowed = PASSES.iter().find(|(m, _)| *m == module);
        let (_, allowed) =
            allowed.unwrap_or_else(|| panic!("passes/src/{module} is not in the table of arrows"));
        for name in names.iter().filter(|n| *n != module) {
            assert!(
                allowed.contains(&name.as_str()),
                "{} imports crate::{name}, which passes/src/{module} must not know",
                path.display()
            );
            arrows += 1;
        }
    });
    assert!(arrows > 20, "the arrows of {arrows} imports were checked");
}
