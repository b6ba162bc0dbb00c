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
        "What can be wrong with a file, whatever the model. The exit status is 2.",
    ),
    (
        "TPC0150",
        "Models",
        "What can be wrong with the hyper-parameters and tensors of a model. The exit status is 1.",
    ),
    (
        "TPC0180",
        "Captured graphs",
        "What can be wrong with a captured ggml graph (the exit status is 2), and what is worth knowing of one.",
    ),
    (
        "TPC0200",
        "Text of the IR",
        "What can be wrong with a `.tpir` text.",
    ),
    (
        "TPC0220",
        "The verifier: structure, types and places",
        "What does not hold in a graph. A plan that breaks one of these is reported as TPC0390.",
    ),
    (
        "TPC0250",
        "The verifier: shardings",
        "What does not hold among the shardings of a graph. A plan that breaks one of these is reported as TPC0390.",
    ),
    (
        "TPC0270",
        "The verifier: programs",
        "What does not hold in the text of a program that runs. A plan that breaks one of these is a fault of tpc.",
    ),
    (
        "TPC0300",
        "Plans",
        "What a plan has to tell. Errors make the exit status 1; warnings and notes leave it 0.",
    ),
    (
        "TPC0400",
        "The command line",
        "What can be wrong with options and with the files that they name. The exit status is 2, or 1 for a comparison \
         that failed.",
    ),
    (
        "TPC0500",
        "Execution",
        "What can go wrong when programs are loaded or run. The exit status is 1.",
    ),
    (
        "TPC0540",
        "CUDA devices",
        "What can be wrong with [devices](cuda.md), their drivers and kernels. The exit status is 1.",
    ),
    (
        "TPC0560",
        "Text",
        "What can go wrong between text and token ids, and in the choice of tokens. The exit status is 2, or 1 for logits.",
    ),
    (
        "TPC0572",
        "Sessions",
        "What can be wrong with saved sessions, and with taking tokens from a sequence. The exit status is 1.",
    ),
    (
        "TPC0580",
        "Artefacts",
        "What can be wrong with an artefact. The exit status is 2, or 1 where it is whole and does not fit what is here.",
    ),
    (
        "TPC0600",
        "Lints of model files",
        "What `tpc lint` has to tell of a file, whatever the devices.",
    ),
    (
        "TPC0640",
        "Lints of captured graphs",
        "What `tpc lint --graph` has to tell of a port, whatever the devices.",
    ),
    (
        "TPC0700",
        "The rules of llama.cpp's tensor split",
        "What `lint --target ggml-meta` finds: why that engine would refuse a captured graph or compute it wrongly, and the \
         equivalents that it takes. See [its rules](ggml-meta.md).",
    ),
    (
        "TPC0800",
        "Lints of configurations",
        "What `tpc lint` and `tpc plan` have to tell of the options.",
    ),
    (
        "TPC0900",
        "Lints of llama.cpp's command lines",
        "What `tpc lint -- llama-server …` has to tell: what that engine would do, and what tpc would.",
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
