//! Diagnostics as users see them, and the registry of their codes.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use serde::Serialize;
use tpc_ir::text::{Entity, Printed};
use tpc_ir::{CodeDoc, Inst};

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
    /// The line of the capture that it is about, from 1.
    #[serde(skip)]
    pub line: Option<usize>,
    /// The part of the graph's text that shows it.
    #[serde(skip)]
    pub excerpt: Option<Box<Excerpt>>,
}

/// A part of a graph's text, with what to see there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    name: &'static str,
    text: Arc<str>,
    /// Lines before it.
    before: usize,
    labels: Vec<(Range<usize>, String)>,
}

impl Excerpt {
    /// The lines of these instructions of a printed graph; `stage` is what `tpc dump` calls it.
    pub fn of(stage: &'static str, printed: &Printed, labels: &[(Inst, String)]) -> Excerpt {
        let span = |inst: Inst| printed.spans.get(Entity::Inst(inst)).unwrap_or_default();
        let spans = labels.iter().map(|(i, _)| span(*i));
        // What is shown around the labels is enough; the rest of a large graph need not be kept.
        let start = spans.clone().map(|s| s.start).min().unwrap_or(0);
        let end = spans.map(|s| s.end).max().unwrap_or(0);
        let before = printed.text[..start]
            .trim_end()
            .rfind('\n')
            .map_or(0, |n| n + 1);
        let after = printed.text[end..].find('\n').map_or(end, |n| end + n);
        let labels = labels
            .iter()
            .map(|(i, text)| {
                let s = span(*i);
                (s.start - before..s.end - before, text.clone())
            })
            .collect();
        Excerpt {
            name: stage,
            text: printed.text[before..after].into(),
            before: printed.text[..before].lines().count(),
            labels,
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What to see, and where in the text.
    pub fn labels(&self) -> &[(Range<usize>, String)] {
        &self.labels
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let found = self.text.read_span(span, before, after)?;
        Ok(Box::new(MietteSpanContents::new_named(
            format!("{}.tpir", self.name),
            found.data(),
            *found.span(),
            found.line() + self.before,
            found.column(),
            found.line_count(),
        )))
    }
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
            line: None,
            excerpt: None,
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

    /// The same about a line of a capture.
    #[must_use]
    pub fn line(mut self, line: usize) -> Diagnostic {
        self.line = Some(line);
        self
    }

    /// The same with the part of a graph that shows it.
    #[must_use]
    pub fn excerpt(mut self, excerpt: Excerpt) -> Diagnostic {
        self.excerpt = Some(Box::new(excerpt));
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

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_deref().map(|e| e as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let labels = self.excerpt.as_ref()?.labels.iter();
        Some(Box::new(labels.map(|(range, text)| {
            LabeledSpan::new_with_span(Some(text.clone()), range.clone())
        })))
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
        code: "TPC0391",
        title: "the programs are not proved to compute what the model says",
        doc: "The proof of the devices' programs against the model's graph stops at the op that is named: its value is\n\
              neither one of the model's, nor a part of one, nor a term of a sum that makes one. Either the programs are\n\
              wrong or the proof lacks a rule for a form; both are faults of tpc. No plan is given.\n\
              Cure: `tpc verify --numeric` tells which it is, by running a small model that is divided alike; if its answers\n\
              agree, `tpc plan --allow-unproved` gives the plan, with this as a warning. Report it with the command and the\n\
              model's header.",
    },
    CodeDoc {
        code: "TPC0392",
        title: "the model cannot be made small",
        doc: "`tpc verify --numeric` runs a small model that is divided as the planned one is. Here no small sizes fit the\n\
              ops, what cannot shrink is too large to run, or the reference executor cannot run an op.\n\
              Example: a captured graph with an op that tpc has no rule for.\n\
              Cure: the proof needs no small model: `tpc verify` without --numeric.",
    },
    CodeDoc {
        code: "TPC0393",
        title: "the small programs have another form",
        doc: "`tpc verify --numeric` compares the programs of the small model with those of the planned one, op by op. They\n\
              differ at the op that is named, in more than sizes: what the small programs compute says little of the\n\
              planned ones. The proof is about the planned ones themselves.\n\
              Cure: report it with the command and the model's header.",
    },
    CodeDoc {
        code: "TPC0394",
        title: "the small programs compute something else",
        doc: "`tpc verify --numeric` ran a small model whole and as the programs of its devices, and the answers differ. The\n\
              message names the first value on a device that is not what the model has, and the op that makes it.\n\
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
        doc: "`tpc explain`, `--deny` or `--allow` names a code that does not exist.\n\
              Cure: `tpc explain` without an argument lists all codes.",
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

/// Whether a code concerns an option or the file itself, so that there is nothing to plan or to lint.
pub fn unusable(code: &str) -> bool {
    ("TPC0100".."TPC0150").contains(&code) || ("TPC0400".."TPC0500").contains(&code)
}

/// Every documented code, in order.
pub fn codes() -> Vec<CodeDoc> {
    let mut out: Vec<CodeDoc> = OWN.to_vec();
    out.extend(crate::lint::lints().map(|l| l.doc));
    out.extend(
        crate::gguf::CODES
            .iter()
            .map(|&(code, title, doc)| CodeDoc { code, title, doc }),
    );
    out.extend(crate::arch::CODES);
    out.extend(crate::capture::CODES);
    out.extend(crate::peer::CODES);
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
