use std::collections::BTreeMap;

use tpc_ir::Code;
use tpc_ir::Inst;

use super::{Capture, Check, EntityKind, Lint};
use tpc_core::report::describe;
use tpc_diag::{Diagnostic, Excerpt, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0649",
        "one layer differs from all others",
        "All layers but one in the middle of the graph have the same ops in the same order. First or last layers are \
         often special, but a single different layer in between is likely a mistake.",
    )
    .example("a branch on the layer's number that was meant for the last layer.")
    .cure("compare the layer with its neighbours, from the named op on."),
    check: Check::Graph(check),
};

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    let ir = graph.ir();
    let mut layers: BTreeMap<u32, Vec<Inst>> = BTreeMap::new();
    for (inst, data) in ir.insts() {
        if let Some(layer) = data.layer {
            layers.entry(layer).or_default().push(inst);
        }
    }
    let ops = |layer: &[Inst]| -> Vec<&'static str> {
        layer.iter().map(|&i| ir.inst(i).op.name()).collect()
    };
    let kinds: Vec<(u32, Vec<&str>)> = layers.iter().map(|(l, i)| (*l, ops(i))).collect();
    // Many models have special first and last layers.
    let Some(inner) = kinds.get(1..kinds.len().saturating_sub(1)) else {
        return;
    };
    if inner.len() < 4 {
        return;
    }
    let usual = &inner[usize::from(inner[0].1 != inner[1].1 && inner[0].1 != inner[2].1)].1;
    let mut odd = inner.iter().filter(|(_, kind)| kind != usual);
    let (Some((layer, kind)), None) = (odd.next(), odd.next()) else {
        return;
    };
    let at = kind.iter().zip(usual).take_while(|(a, b)| a == b).count();
    let insts = &layers[layer];
    let Some(&inst) = insts.get(at).or(insts.last()) else {
        return;
    };
    let value = ir.inst(inst).results.first();
    let name = value.map_or_else(String::new, |&v| describe::name(ir, v));
    let has = |kind: &[&'static str]| kind.get(at).copied().unwrap_or("the end of the layer");
    let message = message!(
        "layer {} has {} ops, the other {} inner layers have {}; at {} the layer has `{}` instead of `{}`",
        layer,
        kind.len(),
        inner.len() - 1,
        usual.len(),
        name,
        has(kind),
        has(usual)
    );
    let d = LINT
        .finding(name, message)
        .help("compare the layer with its neighbours");
    let labels = [(inst, "the first op that differs".to_owned())];
    out.push(d.excerpt(Excerpt::of("model", graph.printed, &labels)));
}
