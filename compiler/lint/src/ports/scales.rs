//! Attention scales that stand out.

use std::collections::BTreeMap;

use tpc_ir::CodeDoc;

use super::{Check, Lint, Names, Port};
use tpc_diag::Diagnostic;
use tpc_ggml::capture::Record;

/// The lint.
pub(crate) const LINT: Lint = Lint {
    names: Names::Op,
    doc: CodeDoc {
        code: "TPC0657",
        title: "one layer attends with another scale",
        doc: "The factor on the dot products is the same in all layers with heads of one size, but for a single \
              layer.\n\
              Example: `1/√128` everywhere, and 1 in the layer whose queries were thought to be scaled already.\n\
              Cure: the same factor in every layer, or the scaled queries in every layer.",
    },
    check: Check::Port(check),
};

fn check(port: &Port<'_>, out: &mut Vec<Diagnostic>) {
    let mut found: BTreeMap<u64, BTreeMap<i32, Vec<&Record>>> = BTreeMap::new();
    for r in port.records.iter().filter(|r| r.op == "FLASH_ATTN_EXT") {
        let Some(q) = r.src.first().copied().flatten() else {
            continue;
        };
        let heads = found.entry(port.records[q].ne()[0]).or_default();
        heads.entry(r.int(0)).or_default().push(r);
    }
    for (size, scales) in found.iter().filter(|(_, s)| s.len() == 2) {
        let total: usize = scales.values().map(Vec::len).sum();
        let odd = scales.values().find(|all| all.len() == 1);
        let usual = scales.values().find(|all| all.len() > 1);
        let (Some(odd), Some(usual)) = (odd, usual) else {
            continue;
        };
        let message = format!(
            "{} has the scale {}, {} others with heads of {size} have {}",
            port.name(odd[0]),
            odd[0].float(0),
            total - 1,
            usual[0].float(0)
        );
        let d = Diagnostic::warning("TPC0657", port.name(odd[0]), message);
        let d = d.help(format!("{}, as in the other layers", usual[0].float(0)));
        out.push(port.at(odd[0], "with another scale", d));
    }
}
