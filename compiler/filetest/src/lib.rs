//! File tests: `.tpir` texts with a command in the header and expectations on lines.
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
//! | `print` | the lines below the header are exactly the printed form |
//! | `parse-error` | parsing gives exactly the expected errors |
//! | `verify` | the text parses, and verifying gives exactly the expected errors |
//! | `place`, `factors`, `plan`, `shard` | the model's graph, planned with `; options`, gives the section |
//! | `rewrite`, `lower` | the sharded graph gives the section |
//! | `canonicalise` | the programs give the section |
//! | `layout`, `cover`, `buffers`, `schedule` | the programs, for the `; target` and the `; shape`s, give the section |
//! | `prove` | the section's programs compute the model, or are refused with the expected error |
//! | `program` | a program's text gives exactly the expected errors of the parser or the verifiers |
//! | `lint` | planning the graph, or the synthetic `; model`, gives exactly the expected findings |
//!
//! A file is in the folder of its command (`print` in `parse`).
//!
//! *Sections.* `; ---- placed` (`factors`, `plan`, `sharded`, `rewritten`, `programs`, `layouts`, `launches`,
//! `buffers`, `queues`) begins the exact output of a pass, or the programs of `prove`. Blessing replaces outputs that
//! differ.
//!
//! *Options.* `; options --devices 2 -ngl 1` gives placement options of the command line.
//!
//! *Targets and shapes.* `; target cuda` selects the storage and kernels of the devices: `file` (the default), `cpu`
//! or `cuda`. `; shape n_tokens=16 n_kv=64` adds a shape with the maximum sizes of a batch; other symbols are 1. The
//! default shape is one token.
//!
//! *Expectations.* `; error[CODE]: words` at the end of a line expects an error on this line. The optional words must
//! be part of the message. A line may have several expectations. For `lint`, write `; warning[CODE]: words` (or
//! `note`, `error`); the words may also be part of the cure. `; expect warning[CODE]: words` in the header expects a
//! finding without a line. `; sharding: split(1: c0)` at the end of a line expects that the plan divides the value
//! this way.
//!
//! Every text that parses is also printed, parsed again and compared. Unknown directives, malformed expectations, a
//! missing command, unused sections and files other than `.tpir` are failures.
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
/// Returns the faults of the header, the sections and the expectations, each as `LINE: MESSAGE`.
pub fn read(path: &Path, frontend: &Frontend) -> Result<Case, Failures> {
    if path.extension().is_none_or(|e| e != "tpir") {
        return Err(vec!["1: not a .tpir file".to_owned()]);
    }
    let text = std::fs::read_to_string(path).map_err(|e| vec![format!("1: {e}")])?;
    Case::read(text, frontend)
}

/// Reads and runs a file test. Returns failures, each as `LINE: MESSAGE`. With `bless`, replaces outputs that differ.
pub fn check(path: &Path, frontend: &Frontend, bless: bool) -> Failures {
    match read(path, frontend) {
        Ok(case) => case.run(frontend, bless.then_some(path)),
        Err(failures) => failures,
    }
}
