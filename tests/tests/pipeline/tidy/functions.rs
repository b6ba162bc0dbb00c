use super::{CRATES, root, sources};

/// The maximum number of lines of a function.
const MOST: usize = 80;

/// Longer functions that are tables: one line or arm per op, key or case.
const TABLES: &[(&str, &str)] = &[
    ("compiler/ggml/src/capture/lowering.rs", "lowering"),
    ("compiler/gguf/src/tests/defects.rs", "cases"),
    ("ir/src/text/tests.rs", "any_op"),
    ("ir/src/verify/error.rs", "help"),
    ("runtime/src/reference/ops/mod.rs", "eval"),
    ("runtime/src/reference/ops/tests.rs", "ops"),
];

/// Returns each function's name and number of lines in a formatted file.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let head = code.split("fn ").next().unwrap_or_default();
        let words = [
            "pub",
            "pub(super)",
            "pub(crate)",
            "const",
            "unsafe",
            "async",
        ];
        if !code.contains("fn ") || !head.split_whitespace().all(|w| words.contains(&w)) {
            continue;
        }
        let name = code[head.len() + 3..]
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .next()
            .unwrap_or_default();
        // A function ends at the first closing brace with the indentation of its head. A head that ends in `;` has no
        // body.
        let end = lines[i..].iter().position(|l| {
            let left = l.len() - l.trim_start().len() == indent;
            left && (l.trim_start().starts_with('}') || l.ends_with(';'))
        });
        out.push((name.to_owned(), end.map_or(1, |e| e + 1)));
    }
    out
}

#[test]
fn functions_stay_short() {
    let (mut long, mut tables, mut counted) = (Vec::new(), Vec::new(), 0);
    for krate in CRATES {
        let mut files = Vec::new();
        sources(&root().join(krate).join("src"), &mut files);
        for f in files {
            let text = std::fs::read_to_string(&f).expect("a source file");
            let path = f.strip_prefix(root()).expect("a file of the tree");
            let path = path.to_string_lossy().into_owned();
            for (name, lines) in functions(&text) {
                counted += 1;
                if lines <= MOST {
                    continue;
                }
                match TABLES
                    .iter()
                    .find(|t| **t == (path.as_str(), name.as_str()))
                {
                    Some(table) => tables.push(*table),
                    None => long.push(format!("{path}: {name} has {lines} lines")),
                }
            }
        }
    }
    assert!(counted > 3000, "{counted} functions were counted");
    assert!(
        long.is_empty(),
        "longer than {MOST} lines:\n{}",
        long.join("\n")
    );
    assert_eq!(tables.len(), TABLES.len(), "no longer long: {TABLES:?}");
}

#[test]
fn the_lines_of_functions_are_counted() {
    let text = "impl X {\n    pub fn one(&self) -> u8 {\n        1\n    }\n\n    fn none();\n}\n";
    let expected = [("one".to_owned(), 3), ("none".to_owned(), 1)];
    assert_eq!(functions(text), expected);
}
