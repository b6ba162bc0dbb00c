//! The analysis of the proof's e-graph: type, age and model value of each e-class.

use egg::{Analysis, DidMerge, EGraph, Id};
use tpc_ir::TensorType;
use tpc_ir::op::Inferred;

use super::interner::Tables;
use super::language::{Head, Term};

/// The facts about an e-class, a class of equal terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    /// The type; `None` for terms that have none, as their op does not take its arguments.
    pub(super) ty: Option<TensorType>,
    /// The age: the number of the first term.
    pub(super) age: u32,
    /// The model's value that the e-class is, by number.
    pub(super) model: Option<u32>,
}

/// The e-graph's analysis, with the tables that terms refer to.
#[derive(Debug, Default)]
pub(super) struct TermAnalysis {
    pub(super) tables: Tables,
    /// Whether two terms of different types were found equal, which sound rules do not do.
    pub(super) contradiction: bool,
}

impl Analysis<Term> for TermAnalysis {
    type Data = Fact;

    fn make(graph: &mut EGraph<Term, TermAnalysis>, term: &Term, id: Id) -> Fact {
        Fact {
            ty: type_of(graph, term),
            age: usize::from(id) as u32,
            model: None,
        }
    }

    fn merge(&mut self, to: &mut Fact, from: Fact) -> DidMerge {
        if to.ty.is_some() && from.ty.is_some() && to.ty != from.ty {
            self.contradiction = true;
        }
        let model = match (to.model, from.model) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let merged = Fact {
            ty: to.ty.clone().or_else(|| from.ty.clone()),
            age: to.age.min(from.age),
            model,
        };
        let did = DidMerge(*to != merged, from != merged);
        *to = merged;
        did
    }
}

fn type_of(graph: &EGraph<Term, TermAnalysis>, term: &Term) -> Option<TensorType> {
    let tables = &graph.analysis.tables;
    let arg = |i: usize| graph[term.args[i]].data.ty.as_ref();
    match term.head {
        Head::Atom { ty, .. } | Head::Zero(ty) => Some(tables.types.get(ty).clone()),
        Head::Op { op, result } => {
            let args: Option<Vec<&TensorType>> = (0..term.args.len()).map(arg).collect();
            match tables.ops.get(op).infer(&args?) {
                Ok(Inferred::Types(types)) => types.into_iter().nth(usize::from(result)),
                _ => None,
            }
        }
        Head::View(view) => {
            let dims = tables.views.get(view).dims.clone();
            arg(0).map(|t| TensorType {
                dtype: t.dtype,
                dims,
            })
        }
        Head::Sum | Head::Mask(_) => arg(0).cloned(),
    }
}
