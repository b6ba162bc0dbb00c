//! The result of a command.

use crate::expectation::{Failures, Reported};

/// The result of a command for a text that parses: findings, failures, and the exact output of a pass.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) reported: Vec<Reported>,
    pub(crate) failures: Failures,
    pub(crate) output: Option<String>,
}

impl Outcome {
    /// Makes the outcome of a command that only reports.
    pub(crate) fn reported(reported: Vec<Reported>) -> Outcome {
        Outcome {
            reported,
            ..Outcome::default()
        }
    }

    /// Makes the outcome of a pass from its output or its error.
    pub(crate) fn output(output: Result<String, String>) -> Outcome {
        match output {
            Ok(text) => Outcome {
                output: Some(text),
                ..Outcome::default()
            },
            Err(e) => Outcome {
                failures: vec![format!("1: {e}")],
                ..Outcome::default()
            },
        }
    }
}
