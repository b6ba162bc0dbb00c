use std::collections::BTreeMap;

use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, Message, message};
use tpc_ggml::capture::Record;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0648",
        "a norm's epsilon differs between layers",
        "Models have one epsilon per kind of norm. The usual causes are two keys for one epsilon, or a constant in \
         one place.",
    )
    .example("`attn_norm` with 1e-6 in the first layer and 1e-5 in the others.")
    .cure("use the epsilon of the model's configuration in every layer."),
    check: Check::Graph(check),
};

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    let mut found: BTreeMap<(&str, &str), BTreeMap<u32, Vec<&Record>>> = BTreeMap::new();
    for r in graph.records {
        // The layer follows the last dash.
        let stem = r
            .name
            .rsplit_once('-')
            .filter(|(_, l)| l.parse::<u32>().is_ok());
        if let (Some(p), Some((stem, _))) = (r.op.norm(), stem) {
            let same = found.entry((r.op.name(), stem)).or_default();
            same.entry(p.eps.to_bits()).or_default().push(r);
        }
    }
    for ((op, stem), by) in found {
        // Skip names that several norms of one layer share.
        let mut names: Vec<&str> = by.values().flatten().map(|r| r.name.as_str()).collect();
        names.sort_unstable();
        if by.len() < 2 || names.windows(2).any(|w| w[0] == w[1]) {
            continue;
        }
        let fewest = by.values().min_by_key(|all| all.len());
        let Some(odd) = fewest.and_then(|all| all.first()) else {
            continue;
        };
        let shown: Vec<Message> = by
            .iter()
            .map(|(&eps, all)| message!("{} in {} layers", f32::from_bits(eps), all.len()))
            .collect();
        let message = message!(
            "{} of {}: the epsilon is {}",
            op,
            stem,
            Message::join(shown, ", ")
        );
        let d = LINT.finding(graph.name(odd), message);
        let d = d.help("use the epsilon of the model's configuration in every layer");
        out.push(graph.at(odd, "has a different epsilon than most", d));
    }
}
