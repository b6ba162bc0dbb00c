//! A systemd unit, for the system or a user.

use super::deployment::PROGRAM;
use super::{Deployment, Unfit};

pub(super) fn emit(deployment: &Deployment) -> Result<String, Unfit> {
    let mut out = deployment.comments();
    out.push_str(&format!(
        "\n[Unit]\nDescription={} on {}\nWants=network-online.target\nAfter=network-online.target\n",
        deployment.name,
        deployment.engine.name()
    ));
    // systemd accepts only absolute paths of programs, and `env` finds the program in PATH.
    out.push_str(&format!("\n[Service]\nExecStart=/usr/bin/env {PROGRAM}"));
    let words = deployment.command(&[]);
    for word in &words {
        let is_option = word.starts_with('-') && word.len() > 1;
        out.push_str(if is_option { " \\\n  " } else { " " });
        out.push_str(&quoted(word));
    }
    out.push_str("\nRestart=on-failure\nRestartSec=5\n\n[Install]\nWantedBy=default.target\n");
    Ok(out)
}

/// Quotes a word of `ExecStart=`. systemd expands `%` and `$`, so both are doubled.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let mut out = "\"".to_owned();
    for c in word.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '%' | '$' => out.extend([c, c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn systemd_reads_quoted_words_as_they_are() {
        for (word, expected) in [
            ("-ngl", "-ngl"),
            ("", "\"\""),
            ("/a b/c.gguf", "\"/a b/c.gguf\""),
            ("50%$HOME", "\"50%%$$HOME\""),
            ("'\"\\", "\"'\\\"\\\\\""),
            ("a\nb\u{1}", "\"a\\nb\\x01\""),
            ("日本", "\"日本\""),
        ] {
            assert_eq!(quoted(word), expected, "{word:?}");
        }
    }
}
