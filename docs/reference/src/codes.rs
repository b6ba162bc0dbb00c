//! The page of diagnostic codes.

use std::fmt::Write;

use tpc::catalogue::codes;

use crate::Part;

pub(crate) const PART: Part = Part {
    name: "codes",
    make: page,
};

/// The sections of the page: the first code of each, its heading, and its subject.
pub(crate) const SECTIONS: &[(&str, &str, &str)] = &[
    (
        "TPC0100",
        "GGUF files",
        "Faults in a file of any model. The exit status is 2.",
    ),
    (
        "TPC0150",
        "Models",
        "Faults in a model's hyper-parameters and tensors. The exit status is 1.",
    ),
    (
        "TPC0180",
        "Captured graphs",
        "Faults in a captured ggml graph (exit status 2), and notes on it.",
    ),
    ("TPC0200", "Text of the IR", "Faults in a `.tpir` text."),
    (
        "TPC0220",
        "The verifier: structure, types and places",
        "Violated invariants of a graph. In a plan, tpc reports them as TPC0390.",
    ),
    (
        "TPC0250",
        "The verifier: shardings",
        "Violated invariants of a graph's shardings. In a plan, tpc reports them as TPC0390.",
    ),
    (
        "TPC0270",
        "The verifier: programs",
        "Violated invariants of a program. In a program that tpc planned, this is a bug in tpc.",
    ),
    (
        "TPC0300",
        "Plans",
        "Findings about a plan. The exit status is 1 for errors, 0 for warnings and notes.",
    ),
    (
        "TPC0400",
        "The command line",
        "Invalid options, and unusable files that options name. The exit status is 2; it is 1 for a failed comparison.",
    ),
    (
        "TPC0500",
        "Execution",
        "Failures while programs are loaded or run. The exit status is 1.",
    ),
    (
        "TPC0540",
        "CUDA devices",
        "Failures of [devices](cuda.md), drivers and kernels. The exit status is 1.",
    ),
    (
        "TPC0560",
        "Text",
        "Failures of tokenization, chat templates and sampling. The exit status is 2; it is 1 for invalid logits.",
    ),
    (
        "TPC0572",
        "Sessions",
        "Unusable session files, and tokens that cannot be removed from a sequence. The exit status is 1.",
    ),
    (
        "TPC0580",
        "Artefacts",
        "Unusable artefacts. The exit status is 2; it is 1 if a valid artefact does not fit this machine or model.",
    ),
    (
        "TPC0600",
        "Lints of model files",
        "Findings in a file, for any devices.",
    ),
    (
        "TPC0640",
        "Lints of captured graphs",
        "Findings in a captured graph (`tpc lint --graph`), for any devices.",
    ),
    (
        "TPC0700",
        "The rules of llama.cpp's tensor split",
        "Findings of `lint --target ggml-meta`: ops that llama.cpp refuses or computes wrongly, and equivalents \
         that it accepts. See [its rules](ggml-meta.md).",
    ),
    (
        "TPC0800",
        "Lints of configurations",
        "Findings in the options, by `tpc lint` and `tpc plan`.",
    ),
    (
        "TPC0900",
        "Lints of llama.cpp's command lines",
        "Findings of `tpc lint -- llama-server …`: the behaviour of that engine, and of tpc.",
    ),
];

/// Returns the entries of all codes. Examples and cures are paragraphs of their own.
fn page() -> String {
    let codes = codes();
    let mut out = String::new();
    let mut left = codes.as_slice();
    for (i, (_, heading, about)) in SECTIONS.iter().enumerate() {
        let end = SECTIONS.get(i + 1).map_or("TPC9999", |s| s.0);
        let (section, rest) = left.split_at(left.partition_point(|c| c.id < end));
        left = rest;
        if section.is_empty() {
            continue;
        }
        let _ = write!(out, "\n## {heading}\n\n{about}\n");
        for c in section {
            let text = c.paragraphs().join("\n\n");
            let _ = write!(out, "\n### {c}: {}\n\n{text}\n", c.title);
        }
    }
    out
}
