//! The file of accepted findings (`--baseline`).

use std::path::{Path, PathBuf};

use super::Args;
use super::print::Checked;
use crate::codes;
use crate::input;
use crate::output::{self, Failure};
use tpc_diag::{Diagnostic, codes as common, message};
use tpc_lint::Baseline;

/// The longest accepted file, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// A file of accepted findings to write.
pub(super) struct Update {
    path: PathBuf,
    text: String,
}

impl Update {
    pub(super) fn save(&self) -> Result<(), Failure> {
        output::replace(&self.path, self.text.as_bytes())
    }
}

/// Marks the accepted findings. With `--update-baseline`, accepts all findings and returns the new file.
pub(super) fn judge(args: &Args, checked: &mut [Checked]) -> Result<Option<Update>, Failure> {
    let Some(path) = &args.baseline else {
        return Ok(None);
    };
    let mut baseline = match args.update_baseline && !path.exists() {
        true => Baseline::default(),
        false => read(path)?,
    };
    // An unusable file or option cannot be accepted.
    let usable = |c: &&mut Checked| c.failed.is_none();
    if !args.update_baseline {
        for one in checked.iter_mut().filter(usable) {
            one.stale = baseline.judge(&one.key, &mut one.findings);
        }
        return Ok(None);
    }
    let files = checked.iter().filter(|c| c.failed.is_none());
    baseline.replace(files.map(|c| (c.key.as_str(), c.findings.as_slice())));
    for one in checked.iter_mut().filter(usable) {
        baseline.judge(&one.key, &mut one.findings);
    }
    let text = baseline.to_text().map_err(|e| {
        let d = Diagnostic::new(
            &common::FILE_ACCESS,
            path.display().to_string(),
            e.to_string(),
        );
        Failure::usage(d.help("report this bug in tpc"))
    })?;
    Ok(Some(Update {
        path: path.clone(),
        text,
    }))
}

fn read(path: &Path) -> Result<Baseline, Failure> {
    let name = path.display().to_string();
    if !path.exists() {
        let d = Diagnostic::new(&codes::BASELINE, name, "no such file");
        return Err(Failure::usage(d.help(codes::BASELINE.cure)));
    }
    let bytes = input::read_file(path, MAX_BYTES)?;
    let text = String::from_utf8_lossy(&bytes);
    Baseline::parse(&text).map_err(|e| {
        let message = message!("line {}: {}", e.line, e.message);
        let d = Diagnostic::new(&codes::BASELINE, name, message);
        Failure::usage(d.help(codes::BASELINE.cure))
    })
}
