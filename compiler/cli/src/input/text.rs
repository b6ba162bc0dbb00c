//! Texts: from the command line or from standard input.

use std::io::Read;
use std::path::Path;

use tpc_diag::{Diagnostic, codes};

use super::regular;
use crate::output::Failure;

/// The maximum text length, in bytes.
const LONGEST: u64 = 256 << 20;

/// Returns the text of `-p`, or else of standard input.
pub(crate) fn given_or_piped(prompt: Option<&str>) -> Result<String, Failure> {
    if let Some(prompt) = prompt {
        return Ok(prompt.to_owned());
    }
    let refused = |message: String| {
        let d = Diagnostic::new(&codes::FILE_ACCESS, "standard input", message);
        Failure::usage(d.help("give UTF-8 text on standard input or by -p TEXT"))
    };
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(LONGEST + 1);
    input
        .read_to_end(&mut bytes)
        .map_err(|e| refused(e.to_string()))?;
    if bytes.len() as u64 > LONGEST {
        return Err(refused(format!("the text is longer than {LONGEST} bytes")));
    }
    String::from_utf8(bytes)
        .map_err(|e| refused(format!("the text is not UTF-8: {}", e.utf8_error())))
}

/// Reads a file's text, without the final line break.
pub(crate) fn of_file(path: &Path) -> Result<String, Failure> {
    let text = String::from_utf8(regular::read(path, LONGEST)?);
    let mut text = text.map_err(|e| {
        let message = format!("the text is not UTF-8: {}", e.utf8_error());
        let d = Diagnostic::new(&codes::FILE_ACCESS, path.display().to_string(), message);
        Failure::usage(d.help("give text in UTF-8"))
    })?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}
