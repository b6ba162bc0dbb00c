//! The list of lints, grouped by their topic.

use std::fmt::Write;

use tpc_lint::TOPICS;

use crate::Part;
use crate::markdown::{anchor, table};

pub(crate) const PART: Part = Part {
    name: "lints",
    make: list,
};

fn list() -> String {
    let mut out = String::new();
    for topic in TOPICS {
        let mut lints = topic.lints.to_vec();
        lints.sort_by_key(|l| l.code.id);
        let rows = lints.iter().map(|lint| {
            let (code, title) = (lint.code.id, lint.code.title);
            let at = anchor(&format!("{code}: {title}"));
            let link = format!("[{code}](codes.md#{at})");
            [link, title.to_owned(), lint.entity.word().to_owned()]
        });
        let found = table(["code", "finding", "at"], rows);
        let _ = write!(out, "\n## Lints of {}\n\n{found}", topic.name);
    }
    out
}
