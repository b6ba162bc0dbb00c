//! Passes do not read names.

use super::{root, sources};

#[test]
fn passes_never_decide_by_a_name() {
    let mut files = Vec::new();
    sources(&root().join("passes/src"), &mut files);
    let questions = [
        ".tensor ==",
        ".tensor !=",
        ".name ==",
        ".name !=",
        "name.contains(",
        "name.starts_with(",
        "name.ends_with(",
        "name.split",
        "name.strip_",
        "tensor.contains(",
        "tensor.starts_with(",
        "tensor.ends_with(",
        "tensor.split",
        "tensor.strip_",
        "name.cmp(",
        "match name",
    ];
    // The proof pairs the leaves of two graphs by name, but makes no plans.
    files.retain(|f| !f.starts_with(root().join("passes/src/prove")));
    for f in files {
        let text = std::fs::read_to_string(&f).expect("a source file");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (n, line) in code.lines().enumerate() {
            let asks = questions.iter().find(|q| line.contains(*q));
            assert!(
                asks.is_none() || line.trim_start().starts_with("//"),
                "{}:{} asks for a name: {line}",
                f.display(),
                n + 1
            );
        }
    }
}
