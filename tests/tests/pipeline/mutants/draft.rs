//! Programs as editable lines.

use tpc_ir::{Graph, Inst, Op, Output, Place, TensorType, Value};

#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) op: Op,
    pub(crate) operands: Vec<usize>,
    pub(crate) results: Vec<usize>,
    pub(crate) layer: Option<u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) name: String,
    pub(crate) ty: TensorType,
    pub(crate) place: Place,
}

#[derive(Clone, Debug)]
pub(crate) struct Draft {
    of: Graph,
    pub(crate) lines: Vec<Line>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) outputs: Vec<(Output, usize)>,
}

impl Draft {
    pub(crate) fn new(graph: &Graph) -> Draft {
        let numbers = |vs: &[Value]| vs.iter().map(|v| v.index()).collect();
        let lines = graph.insts().map(|(_, i)| Line {
            op: i.op.clone(),
            operands: numbers(&i.operands),
            results: numbers(&i.results),
            layer: i.layer,
        });
        let cells = graph.values().map(|(_, v)| Cell {
            name: v.name.clone(),
            ty: v.ty.clone(),
            place: v.place,
        });
        let mut of = graph.without_insts();
        of.devices.clone_from(&graph.devices);
        Draft {
            of,
            lines: lines.collect(),
            cells: cells.collect(),
            outputs: graph
                .outputs
                .iter()
                .map(|o| (o.clone(), o.value().index()))
                .collect(),
        }
    }

    pub(crate) fn def(&self, value: usize) -> usize {
        let at = self.lines.iter().position(|l| l.results.contains(&value));
        at.expect("every value is defined")
    }

    pub(crate) fn like(&mut self, value: usize) -> usize {
        self.cells.push(self.cells[value].clone());
        self.cells.len() - 1
    }

    /// Inserts a line before another, and renumbers later lines.
    pub(crate) fn insert(&mut self, at: usize, op: Op, operands: Vec<usize>, results: Vec<usize>) {
        let layer = self.lines[at.min(self.lines.len() - 1)].layer;
        self.lines.insert(
            at,
            Line {
                op,
                operands,
                results,
                layer,
            },
        );
    }

    /// Inserts an op before a line; the result is like the first operand.
    pub(crate) fn result(&mut self, at: usize, op: Op, operands: &[usize]) -> usize {
        let new = self.like(operands[0]);
        self.insert(at, op, operands.to_vec(), vec![new]);
        new
    }

    /// Makes all readers of a value, from line `from` on, read another value.
    pub(crate) fn redirect(&mut self, from: usize, value: usize, to: usize) -> Vec<usize> {
        let mut changed = Vec::new();
        for (i, l) in self.lines.iter_mut().enumerate().skip(from) {
            for o in &mut l.operands {
                if *o == value {
                    *o = to;
                    changed.push(i);
                }
            }
        }
        for (_, v) in &mut self.outputs {
            if *v == value {
                *v = to;
            }
        }
        changed.dedup();
        changed
    }

    /// Builds the graph; `None` if a value is used before its definition.
    pub(crate) fn graph(&self) -> Option<Graph> {
        let mut out = self.of.clone();
        let mut made: Vec<Option<Value>> = vec![None; self.cells.len()];
        for l in &self.lines {
            let operands: Option<Vec<Value>> = l.operands.iter().map(|&o| made[o]).collect();
            let types = l
                .results
                .iter()
                .map(|&r| self.cells[r].ty.clone())
                .collect();
            let places: Vec<Place> = l.results.iter().map(|&r| self.cells[r].place).collect();
            let inst = out.push_at(l.op.clone(), operands?, types, &places, l.layer);
            for (k, &r) in l.results.iter().enumerate() {
                let v = out.inst(inst).results[k];
                out.value_mut(v).name.clone_from(&self.cells[r].name);
                made[r] = Some(v);
            }
        }
        for (output, v) in &self.outputs {
            let value = made[*v]?;
            out.outputs.push(match output {
                Output::Named(name, _) => Output::Named(name.clone(), value),
                Output::State { state, .. } => Output::State {
                    state: made[state.index()]?,
                    value,
                },
            });
        }
        Some(out)
    }
}

pub(crate) fn inst(line: usize) -> Inst {
    Inst::new(line)
}
