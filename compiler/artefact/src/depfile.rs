use std::fmt::Write;

/// Returns the Makefile rule of `target` with its dependencies, as from a compiler's `-MD`. Blanks and `#` get a
/// backslash; `$` is doubled.
pub fn rule(target: &str, dependencies: &[String]) -> String {
    let mut out = format!("{}:", word(target));
    for dependency in dependencies {
        let _ = write!(out, " \\\n  {}", word(dependency));
    }
    out.push('\n');
    out
}

/// Escapes a file name. Make needs doubled backslashes only before blanks and `#`.
fn word(path: &str) -> String {
    let mut out = String::new();
    let mut backslashes = 0;
    for c in path.chars() {
        match c {
            ' ' | '\t' | '#' => {
                out.extend(std::iter::repeat_n('\\', backslashes + 1));
                out.push(c);
            }
            '$' => out.push_str("$$"),
            _ => out.push(c),
        }
        backslashes = match c {
            '\\' => backslashes + 1,
            _ => 0,
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_make_reads_them() {
        let files = ["m.gguf", "a b#c.ron", "$x", "y\\ z", "w\\x"].map(str::to_owned);
        assert_eq!(
            rule("out dir/m.tpc", &files),
            "out\\ dir/m.tpc: \\\n  m.gguf \\\n  a\\ b\\#c.ron \\\n  $$x \\\n  y\\\\\\ z \\\n  w\\x\n"
        );
        assert_eq!(rule("x", &[]), "x:\n");
    }
}
