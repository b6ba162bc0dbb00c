//! The earlier plan of `--diff`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::output::Failure;
use tpc_core::report::{PlanDiff, PlanReport, Snapshot};
use tpc_diag::{Diagnostic, codes};

/// The maximum size of an earlier plan, in bytes: ten times the largest model's plan on the most devices.
const MOST: u64 = 256 << 20;

pub(super) struct Earlier {
    file: String,
    plan: Snapshot,
}

fn refused(file: &str, message: impl Into<String>) -> Failure {
    let d = Diagnostic::new(&codes::OLD_PLAN, file, message.into());
    Failure::usage(d.help("give the output of `tpc plan MODEL … --format json`"))
}

pub(super) fn read(path: &Path) -> Result<Earlier, Failure> {
    let file = path.display().to_string();
    let mut bytes = Vec::new();
    let opened = File::open(path).map_err(|e| Failure::file(path, &e))?;
    let read = opened.take(MOST + 1).read_to_end(&mut bytes);
    read.map_err(|e| Failure::file(path, &e))?;
    if bytes.len() as u64 > MOST {
        let message = format!(
            "the file is larger than {} MiB, the limit for plans",
            MOST >> 20
        );
        return Err(refused(&file, message));
    }
    let plan = Snapshot::from_json(&bytes).map_err(|e| refused(&file, e.to_string()))?;
    Ok(Earlier { file, plan })
}

impl Earlier {
    pub(super) fn compared_with(&self, report: &PlanReport) -> Result<PlanDiff, Failure> {
        let now = Snapshot::of(report).map_err(|e| refused(&self.file, e.to_string()))?;
        Ok(PlanDiff::new(&self.file, &self.plan, &now))
    }
}
