use std::collections::BTreeSet;

use tpc_ir::{Graph, Inst, InstData, Op, Value};

/// The ops before the layers of a graph.
///
/// The prologue ends at the first op outside the layers that reads a layer's result, or at the last op of the layers if
/// that is earlier. The model's output is therefore in the epilogue, even if further layers follow (drafting blocks). A
/// graph without layers has an empty prologue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prologue(Option<Inst>);

impl Prologue {
    /// Returns the prologue of a graph.
    pub fn of_graph(graph: &Graph) -> Prologue {
        let made_by_layer = |d: &InstData| {
            d.operands.iter().any(|&v| {
                let def = graph.inst(graph.value(v).def.0);
                def.layer.is_some() && !def.op.is_leaf()
            })
        };
        let mut reads = graph
            .insts()
            .filter(|(_, d)| d.layer.is_none() && made_by_layer(d))
            .map(|(i, _)| i);
        let layered = graph.insts().filter(|(_, d)| d.layer.is_some());
        let last = layered.map(|(i, _)| i).next_back();
        Prologue(last.map(|last| reads.next().map_or(last, |first| first.min(last))))
    }

    /// Returns the section of an instruction of the given layer.
    pub fn section(self, inst: Inst, layer: Option<u32>) -> Section {
        match layer {
            Some(l) => Section::Layer(l),
            None if self.contains(inst) => Section::Prologue,
            None => Section::Epilogue,
        }
    }

    /// Returns the weights of the prologue that an op of the epilogue reads, too, such as an embedding table that is also
    /// the output matrix.
    pub fn shared_weights(self, graph: &Graph) -> BTreeSet<Value> {
        let is_shared = |v: &Value| {
            let def = graph.value(*v).def.0;
            let data = graph.inst(def);
            matches!(data.op, Op::Weight(_)) && self.section(def, data.layer) == Section::Prologue
        };
        let epilogue = graph
            .insts()
            .filter(|(inst, d)| self.section(*inst, d.layer) == Section::Epilogue);
        epilogue
            .flat_map(|(_, d)| d.operands.iter().copied())
            .filter(is_shared)
            .collect()
    }

    fn contains(self, inst: Inst) -> bool {
        Some(inst) < self.0
    }
}

/// A part of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Before the layers.
    Prologue,
    /// A layer with its number.
    Layer(u32),
    /// After the layers.
    Epilogue,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_before_the_last_layer_follows_the_layers() {
        let text = r#"tpir 1
graph "g"
v0: f32[8] @host = input {name = "x"}
layer 0
v1: f32[8] @host = relu v0
layer none
v2: f32[8] @host = input {name = "mask"}
v3: f32[8] @host = relu v1
v4: f32[8] @host = input {name = "later"}
layer 1
v5: f32[8] @host = add v1, v4
layer none
v6: f32[8] @host = relu v4
output "logits" = v3
output "draft" = v5
"#;
        let graph = tpc_ir::text::parse(text).map_err(|e| e[0].to_string());
        let graph = graph.expect("it parses").graph;
        let prologue = Prologue::of_graph(&graph);
        let preceding = graph.insts().map(|(i, _)| prologue.contains(i));
        assert_eq!(
            preceding.collect::<Vec<_>>(),
            [true, true, true, false, false, false, false]
        );
        let flat = text.lines().filter(|l| !l.starts_with("layer"));
        let flat = tpc_ir::text::parse(&flat.collect::<Vec<_>>().join("\n"));
        let flat = flat.map_err(|e| e[0].to_string()).expect("it parses").graph;
        assert!(
            flat.insts()
                .all(|(i, _)| !Prologue::of_graph(&flat).contains(i))
        );
    }
}
