//! File tests: `.tpir` texts with a command in their header and expectations on the lines they concern.
//!
//! ```text
//! ;; Prose about the test; as many lines as it needs.
//! ; test verify
//! tpir 1
//! …
//! v3: f32[8] @host = add v1, v2 ; error[TPC0244]: operand 1 from dev0
//! ```
//!
//! | command | the case passes if |
//! |---|---|
//! | `parse` | the text parses |
//! | `print` | the text parses, and the lines below the header are exactly what printing gives |
//! | `parse-error` | parsing gives exactly the expected errors |
//! | `verify` | the text parses, and verifying gives exactly the expected errors |
//! | `place`, `factors`, `plan`, `shard` | the model's graph, planned with `; options`, gives the text in the section below |
//! | `rewrite`, `lower` | the sharded graph gives the text in the section below |
//! | `canonicalise` | the programs give the programs in the section below |
//! | `layout`, `cover`, `buffers`, `schedule` | the programs, for the `; target` and the `; shape`s, give the text in the section below |
//! | `prove` | the programs in the section below compute the model, or are refused with the expected error |
//! | `program` | the text of a program gives exactly the expected errors of the parser, or of the verifiers of graphs and programs |
//! | `lint` | planning the graph, or the synthetic `; model`, gives exactly the expected findings |
//!
//! The folder of a file is the name of its command (`parse` also holds `print`).
//!
//! *Sections.* `; ---- placed` (`factors`, `plan`, `sharded`, `rewritten`, `programs`, `layouts`, `launches`, `buffers`,
//! `queues`) begins the exact output of a pass, or the programs of `prove`. Blessing rewrites outputs that differ.
//!
//! *Options.* `; options --devices 2 -ngl 1` gives placement options as on the command line.
//!
//! *Targets and shapes.* `; target cuda` gives the devices' storage and kernels: `file`, the default, `cpu` or `cuda`.
//! `; shape n_tokens=16 n_kv=64` gives the largest sizes of a batch; symbols that it leaves out are 1. Each `; shape` line
//! adds a shape. Without one, the only shape is one token.
//!
//! *Expectations.* `; error[CODE]: words` at the end of a line expects an error on this line. The words are optional
//! and must be part of the message. A line may have several expectations. For `lint`, write `; warning[CODE]: words`
//! (or `note`, `error`); the words may also be part of the cure. For a finding without a line, write
//! `; expect warning[CODE]: words` in the header. `; sharding: split(1: c0)` at the end of a line expects that the plan
//! divides the value this way.
//!
//! Every text that parses is also printed, parsed again and compared. Unknown directives, malformed expectations, texts
//! without a command, unused sections and files other than `.tpir` fail.
//!
//! To add a command, add a variant to [`Command`]; the compiler then requires [`Case::run`] to handle it.

mod case;
mod command;
mod expectation;
mod frontend;
mod lint;
mod memory;
mod outcome;
mod planning;
mod program;
mod run;

use std::path::Path;

pub use case::Case;
pub use command::Command;
pub use expectation::Failures;
pub use frontend::{Frontend, ReadPlacement};

/// Reads a file test.
///
/// # Errors
/// Returns the faults of the header, sections and expectations, each as `LINE: MESSAGE`.
pub fn read(path: &Path, frontend: &Frontend) -> Result<Case, Failures> {
    if path.extension().is_none_or(|e| e != "tpir") {
        return Err(vec!["1: not a .tpir file".to_owned()]);
    }
    let text = std::fs::read_to_string(path).map_err(|e| vec![format!("1: {e}")])?;
    Case::read(text, frontend)
}

/// Reads and runs a file test. Returns its failures, each as `LINE: MESSAGE`. With `bless`, an output that differs is
/// written to the file instead.
pub fn check(path: &Path, frontend: &Frontend, bless: bool) -> Failures {
    match read(path, frontend) {
        Ok(case) => case.run(frontend, bless.then_some(path)),
        Err(failures) => failures,
    }
}
