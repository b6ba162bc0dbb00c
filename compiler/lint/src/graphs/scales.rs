use std::collections::BTreeMap;

use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::capture::Record;
use tpc_ggml::op::GgmlOp;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0657",
        "one layer has a different attention scale",
        "One layer multiplies the dot products of queries and keys by a different factor than all other layers with \
         the same head size.",
    )
    .example("`1/√128` everywhere, but 1 in the layer with queries that seemed to be scaled already.")
    .cure("use the same factor in every layer, or scaled queries in every layer."),
    check: Check::Graph(check),
};

/// The attention ops and scales by scale.
type ByLayer<'a> = BTreeMap<u32, Vec<(&'a Record, f32)>>;

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    let mut found: BTreeMap<u64, ByLayer<'_>> = BTreeMap::new();
    for r in graph.records {
        let GgmlOp::FlashAttnExt(p) = &r.op else {
            continue;
        };
        let Some(q) = r.src.first().copied().flatten() else {
            continue;
        };
        let heads = found.entry(graph.records[q].ne()[0]).or_default();
        let alike = heads.entry(p.scale.to_bits()).or_default();
        alike.push((r, p.scale));
    }
    for (size, scales) in found.iter().filter(|(_, s)| s.len() == 2) {
        let total: usize = scales.values().map(Vec::len).sum();
        let odd = scales.values().find(|all| all.len() == 1);
        let usual = scales.values().find(|all| all.len() > 1);
        let (Some(&[(odd, scale)]), Some(&[(_, usual), ..])) =
            (odd.map(Vec::as_slice), usual.map(Vec::as_slice))
        else {
            continue;
        };
        let message = message!(
            "{} has the scale {}, but {} others with heads of {} have {}",
            graph.name(odd),
            scale,
            total - 1,
            size,
            usual
        );
        let d = LINT.finding(graph.name(odd), message);
        let d = d.help(message!("use {}, as in the other layers", usual));
        out.push(graph.at(odd, "with another scale", d));
    }
}
