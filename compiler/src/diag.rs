//! Diagnostics as users see them, and the registry of their codes.

use std::fmt;

use serde::Serialize;
use tpc_ir::CodeDoc;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It works; worth knowing.
    Note,
    /// It works, but hurts or is likely unintended.
    Warning,
    /// It does not work.
    Error,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Its code; `tpc explain CODE` says more.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// The tensor, key, option, device or file concerned.
    pub entity: String,
    /// The cure.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(
        code: &'static str,
        entity: impl Into<String>,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            entity: entity.into(),
            help: None,
        }
    }

    /// A warning.
    pub fn warning(
        code: &'static str,
        entity: impl Into<String>,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, entity, message)
        }
    }

    /// A note.
    pub fn note(
        code: &'static str,
        entity: impl Into<String>,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic {
            severity: Severity::Note,
            ..Diagnostic::error(code, entity, message)
        }
    }

    /// The same with a cure.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.entity.is_empty() || self.message.contains(&self.entity) {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.entity, self.message)
        }
    }
}

impl std::error::Error for Diagnostic {}

impl miette::Diagnostic for Diagnostic {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.severity {
            Severity::Note => miette::Severity::Advice,
            Severity::Warning => miette::Severity::Warning,
            Severity::Error => miette::Severity::Error,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help
            .as_ref()
            .map(|h| Box::new(h) as Box<dyn fmt::Display>)
    }
}

/// Codes of planning and of the command line.
const OWN: &[CodeDoc] = &[
    CodeDoc {
        code: "TPC0390",
        title: "the plan does not verify",
        doc: "The verifier rejects what the planner made. This is a fault of tpc: nothing is printed that could be wrong.\n\
              Cure: report it with the command and the model's header.",
    },
    CodeDoc {
        code: "TPC0400",
        title: "unusable command line",
        doc: "An option's value is not of the form that it takes, or an option or argument is unknown or missing. The\n\
              message says what was expected.\n\
              Example: `--devices zero`, `--tensor-split 1,,2`, `tpc plan` without a model.\n\
              Cure: `tpc COMMAND --help` lists what the command takes.",
    },
    CodeDoc {
        code: "TPC0410",
        title: "unusable override of a tensor's place",
        doc: "`--override-tensor` takes `REGEX=PLACE`, several separated by commas. The regex is one as in most languages,\n\
              lookaround and back references included; it matches when it is found anywhere in a tensor's name. The\n\
              place is `host` (or `CPU`), `mirrored`, or a device by name, position (`dev1`) or number (`CUDA1`).\n\
              Example: `-ot 'blk\\.(1|2)\\.ffn_.*=CPU,output.*=dev0'`.\n\
              Cure: the message names what is wrong and the places that there are.",
    },
    CodeDoc {
        code: "TPC0401",
        title: "option not supported yet",
        doc: "The option is part of the command-line contract, but this version does not plan it; ignoring it would give\n\
              a plan for something else.\nCure: leave it out.",
    },
    CodeDoc {
        code: "TPC0402",
        title: "a file cannot be read or written",
        doc: "The file system refuses. The message has its reason.\n\
              Cure: check the path, the permissions, and the space on the disk.",
    },
    CodeDoc {
        code: "TPC0403",
        title: "unusable topology file",
        doc: "The file is not a topology in RON, or a number in it makes no sense. The message has the line and column.\n\
              Example: `Topology(devices: [(name: \"gpu\", memory: Some(80e9), bandwidth: 2e12, flops: 4e14)])`.",
    },
    CodeDoc {
        code: "TPC0404",
        title: "unusable golden file",
        doc: "The file does not have the magic number, sizes or length of a golden-logits file (see the user guide).",
    },
    CodeDoc {
        code: "TPC0405",
        title: "the model has no tensor data",
        doc: "The file is a header only: it can be planned, not executed.\nCure: give the whole model.",
    },
    CodeDoc {
        code: "TPC0406",
        title: "the comparison failed",
        doc: "The logits differ from the golden ones by more than `--tolerance`.",
    },
    CodeDoc {
        code: "TPC0407",
        title: "unknown code",
        doc: "`tpc explain` was asked about a code that does not exist. Without an argument it lists all.",
    },
    CodeDoc {
        code: "TPC0408",
        title: "unknown preset or specification",
        doc: "`tpc synth` was given neither a preset nor a specification of the form `ARCH:key=value,…`.",
    },
    CodeDoc {
        code: "TPC0409",
        title: "no such tensor",
        doc: "`--why` names no weight, state or other value of the graph, and as a regular expression it matches none.\n\
              Example: `--why blk.0.attn_qkv` where queries, keys and values have weights of their own.\n\
              Cure: the tensors' names are in `tpc plan -v`.",
    },
];

/// Every documented code, in order.
pub fn codes() -> Vec<CodeDoc> {
    let mut out: Vec<CodeDoc> = OWN.to_vec();
    out.extend(crate::lint::LINTS.iter().map(|l| l.doc));
    out.extend(
        crate::gguf::CODES
            .iter()
            .map(|&(code, title, doc)| CodeDoc { code, title, doc }),
    );
    out.extend(crate::arch::CODES);
    out.extend(crate::capture::CODES);
    out.extend(tpc_ir::text::CODES);
    out.extend(tpc_ir::verify::CODES);
    out.sort_by_key(|c| c.code);
    out
}

impl From<crate::gguf::GgufError> for Diagnostic {
    fn from(e: crate::gguf::GgufError) -> Diagnostic {
        Diagnostic::error(e.code(), e.file(), e.to_string()).help(e.help())
    }
}

impl From<crate::capture::CaptureError> for Diagnostic {
    fn from(e: crate::capture::CaptureError) -> Diagnostic {
        Diagnostic::error(e.code(), "capture", e.to_string()).help(e.help())
    }
}

impl From<crate::arch::ArchError> for Diagnostic {
    fn from(e: crate::arch::ArchError) -> Diagnostic {
        Diagnostic::error(e.code(), "model", e.to_string()).help(e.help())
    }
}
