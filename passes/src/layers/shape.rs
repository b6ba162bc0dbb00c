use rustc_hash::FxHashMap;
use tpc_ir::{Graph, Inst, Op, Value};

/// The caller's view of ops and values. Layers with equal views are alike.
pub trait View {
    /// The caller's representation of an op.
    type Op;
    /// The caller's representation of a value.
    type Value;

    /// Returns the view of an instruction's op.
    fn op(&mut self, op: &Op) -> Self::Op;

    /// Returns the view of an operand defined outside the layer.
    fn external(&mut self, v: Value) -> Self::Value;

    /// Returns the view of a result of an instruction of the layer.
    fn result(&mut self, v: Value) -> Self::Value;
}

/// An operand of a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operand<V> {
    /// A result of an earlier step, by its number among all results of the layer, from 0.
    Internal(usize),
    /// A value defined outside the layer.
    External(V),
}

/// An instruction without names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step<O, V> {
    /// The op.
    pub op: O,
    /// The operands.
    pub operands: Vec<Operand<V>>,
    /// The results.
    pub results: Vec<V>,
}

/// The steps of a layer, in program order.
pub type Shape<O, V> = Vec<Step<O, V>>;

/// Returns the shape of the given instructions. The view gets each instruction's operands, then its results.
pub fn shape<W: View>(graph: &Graph, insts: &[Inst], view: &mut W) -> Shape<W::Op, W::Value> {
    let mut inside: FxHashMap<Value, usize> = FxHashMap::default();
    let mut out = Vec::with_capacity(insts.len());
    for &inst in insts {
        let data = graph.inst(inst);
        let mut operands = Vec::with_capacity(data.operands.len());
        for v in &data.operands {
            operands.push(match inside.get(v) {
                Some(&n) => Operand::Internal(n),
                None => Operand::External(view.external(*v)),
            });
        }
        let mut results = Vec::with_capacity(data.results.len());
        for &v in &data.results {
            inside.insert(v, inside.len());
            results.push(view.result(v));
        }
        out.push(Step {
            op: view.op(&data.op),
            operands,
            results,
        });
    }
    out
}
