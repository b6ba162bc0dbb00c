//! Annotations for GitHub Actions: one workflow command per finding.

use std::fmt::Write;

use crate::Finding;
use tpc_diag::Severity;

/// Formats the findings about the file at `path`, one per line. Accepted findings are left out. A finding with a known
/// line of the sources is reported there.
pub fn github(path: &str, findings: &[Finding]) -> String {
    let mut out = String::new();
    for f in findings.iter().filter(|f| !f.is_accepted()) {
        let d = &f.diagnostic;
        let command = match d.severity {
            Severity::Note => "notice",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        let (path, line) = match &f.origin {
            Some(origin) => (origin.file.as_str(), Some(origin.line)),
            None => (path, d.line.map(|l| l.get() as usize)),
        };
        let line = line.map_or_else(String::new, |l| format!(",line={l}"));
        let title = format!("{} {}", d.code, d.entity);
        let help = d
            .help
            .as_ref()
            .map_or_else(String::new, |h| format!("\n{h}"));
        let _ = writeln!(
            out,
            "::{command} file={}{line},title={}::{}",
            property(path),
            property(title.trim()),
            data(&format!("{}{help}", f.message()))
        );
    }
    out
}

/// Escapes a command's message, whose line ends would end the command.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a command's property; `:` and `,` separate properties.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge;
    use tpc_diag::{Code, Diagnostic};

    #[test]
    fn what_would_end_a_command_is_escaped() {
        static SAMPLE: Code = Code::warning("TPC0301", "a sample", "A sample.");
        let d = Diagnostic::new(&SAMPLE, "a:b,c", "50 %: one\ntwo")
            .help("three")
            .line(7);
        assert_eq!(
            github("a,b:c%.jsonl", &merge(vec![d])),
            "::warning file=a%2Cb%3Ac%25.jsonl,line=7,title=TPC0301 a%3Ab%2Cc::50 %25: one%0Atwo%0Athree\n"
        );
    }
}
