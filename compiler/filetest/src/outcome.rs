use crate::expectation::{Failures, Reported};

#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) reported: Vec<Reported>,
    pub(crate) failures: Failures,
    pub(crate) output: Option<String>,
}

impl Outcome {
    pub(crate) fn reported(reported: Vec<Reported>) -> Outcome {
        Outcome {
            reported,
            ..Outcome::default()
        }
    }

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
