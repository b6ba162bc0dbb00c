//! The rules of the proof, of rewriting, and of ggml's tensor split.

use tpc_ggml::meta::RULES;
use tpc_ggml::meta::repair::EQUATIONS;
use tpc_passes::{prove, rewrite};

use crate::Part;
use crate::markdown::table;

pub(crate) const PROOF: Part = Part {
    name: "proof-rules",
    make: || {
        // `x[p](y)` is not a link.
        let plain = |equation: &str| equation.replace("](", "]\\(");
        let rows = prove::rules().map(|(name, e)| [format!("`{name}`"), plain(e)]);
        table(["rule", "equation"], rows)
    },
};

pub(crate) const REWRITING: Part = Part {
    name: "rewriting-rules",
    make: || {
        let rows = rewrite::RULES.iter().map(|r| {
            let code = |text: &str| format!("`{text}`");
            [code(r.name), code(r.equation), r.condition.to_owned()]
        });
        table(["rule", "equation", "condition"], rows)
    },
};

pub(crate) const GGML_META: Part = Part {
    name: "ggml-meta-rules",
    make: || {
        let rows = RULES.iter().map(|r| {
            let ops: Vec<String> = r.ops().map(|op| format!("`{op}`")).collect();
            [ops.join(" "), r.says.to_owned()]
        });
        let aborts = ["any other".to_owned(), "the process aborts".to_owned()];
        table(["ops", "takes → makes"], rows.chain([aborts]))
    },
};

pub(crate) const REPAIRS: Part = Part {
    name: "ggml-meta-equations",
    make: || {
        let rows = EQUATIONS
            .iter()
            .map(|e| [e.name.to_owned(), e.says.to_owned()]);
        table(["equation", "both sides"], rows)
    },
};
