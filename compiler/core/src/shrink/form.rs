use std::collections::HashMap;
use std::fmt::Write as _;

use tpc_ir::{Graph, Inst, InstData, Value};

/// The first difference between a large and a small program, except for sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Layer of the difference; `None` outside layers.
    pub layer: Option<u32>,
    /// Instruction of the large program.
    pub large: String,
    /// Instruction of the small program.
    pub small: String,
}

fn form(graph: &Graph, layer: Option<u32>) -> Vec<String> {
    let mut inside: HashMap<Value, usize> = HashMap::new();
    let own = |(_, d): &(Inst, &InstData)| d.layer == layer;
    graph
        .insts()
        .filter(own)
        .map(|(_, data)| {
            let mut text = data.op.name().to_owned();
            for v in &data.operands {
                let of = graph.value(*v);
                let _ = match (inside.get(v), graph.inst(of.def.0).layer) {
                    (Some(n), _) => write!(text, " v{n}"),
                    // Omit the layer's number, which depends on the kept layers.
                    (None, Some(_)) => write!(text, " (of a layer)"),
                    (None, None) => write!(text, " {}", of.name),
                };
            }
            for &v in &data.results {
                let n = inside.len();
                inside.insert(v, n);
                let data = graph.value(v);
                let _ = write!(text, " → {} on {}", data.name, data.place);
            }
            text
        })
        .collect()
}

pub(super) fn departure(large: &Graph, small: &Graph, layers: &[u32]) -> Option<Departure> {
    let layers = layers.iter().map(|&l| Some(l));
    layers.chain([None]).find_map(|layer| {
        let (a, b) = (form(large, layer), form(small, layer));
        let at = (0..a.len().max(b.len())).find(|&i| a.get(i) != b.get(i))?;
        let text = |form: &[String]| {
            form.get(at)
                .cloned()
                .unwrap_or_else(|| "nothing".to_owned())
        };
        Some(Departure {
            layer,
            large: text(&a),
            small: text(&b),
        })
    })
}
