use egg::{Analysis, DidMerge, EGraph, Id};
use tpc_ir::op::{InferredTypes, OpCategory};
use tpc_ir::{Op, TensorType};

use super::finite::{self, Domain, domain};
use super::interner::Tables;
use super::language::{Head, Term};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) ty: Option<TensorType>,
    /// The number of the first term added to the e-class.
    pub(super) age: u32,
    /// The number of the model's value that is equal, if any.
    pub(super) model: Option<u32>,
    /// True if all elements are known to be finite (`finite.rs`).
    pub(super) number: bool,
}

#[derive(Debug, Default)]
pub(super) struct TermAnalysis {
    pub(super) tables: Tables,
    /// True if terms of different types were found equal. Sound rules never do this.
    pub(super) contradiction: bool,
    pub(super) domains: Vec<(Domain, Id)>,
}

impl Analysis<Term> for TermAnalysis {
    type Data = Fact;

    fn make(graph: &mut EGraph<Term, TermAnalysis>, term: &Term, id: Id) -> Fact {
        Fact {
            ty: type_of(graph, term),
            age: usize::from(id) as u32,
            model: None,
            number: is_number(graph, term),
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
            number: to.number || from.number,
        };
        let did = DidMerge(*to != merged, from != merged);
        *to = merged;
        did
    }
}

fn is_number(graph: &EGraph<Term, TermAnalysis>, term: &Term) -> bool {
    let of = |k: usize| graph[term.args[k]].data.number;
    match term.head {
        // The caller decides this for atoms.
        Head::Atom { .. } => false,
        Head::Zero(_) => true,
        Head::View(_) | Head::Mask(_) => of(0),
        Head::Sum => (0..term.args.len()).all(of),
        Head::Op { op, .. } => match graph.analysis.tables.ops.get(op) {
            Op::Opaque(_) => false,
            op => {
                let given = finite::gives_numbers(op, of, term.args.len());
                given && is_defined(graph, op, &term.args)
            }
        },
    }
}

/// True if an op is defined on these operands: the op is total, or the model applies it to the same value. A part or a
/// repetition of the model's value also qualifies.
pub(super) fn is_defined(graph: &EGraph<Term, TermAnalysis>, op: &Op, args: &[Id]) -> bool {
    /// The maximum number of nested views to follow.
    const DEPTH: usize = 4;
    let ty = |k: usize| args.get(k).and_then(|&a| graph[a].data.ty.as_ref());
    let Some((domain, k)) = domain(op, ty) else {
        return true;
    };
    args.get(k).is_some_and(|&a| {
        let in_model = |id: Id| {
            let known = &graph.analysis.domains;
            known
                .iter()
                .any(|(d, of)| domain.contains(d) && graph.find(*of) == id)
        };
        let mut open = vec![graph.find(a)];
        for _ in 0..DEPTH {
            if open.iter().any(|&id| in_model(id)) {
                return true;
            }
            let nodes = open.iter().flat_map(|&id| &graph[id].nodes);
            open = nodes.filter_map(|n| selection_operand(graph, n)).collect();
        }
        false
    })
}

fn selection_operand(graph: &EGraph<Term, TermAnalysis>, term: &Term) -> Option<Id> {
    let of = match term.head {
        Head::View(_) => true,
        Head::Op { op, .. } => matches!(
            graph.analysis.tables.ops.get(op).category(),
            OpCategory::Repetition | OpCategory::Selection | OpCategory::Layout
        ),
        Head::Atom { .. } | Head::Sum | Head::Zero(_) | Head::Mask(_) => false,
    };
    of.then(|| graph.find(term.args[0]))
}

fn type_of(graph: &EGraph<Term, TermAnalysis>, term: &Term) -> Option<TensorType> {
    let tables = &graph.analysis.tables;
    let arg = |i: usize| graph[term.args[i]].data.ty.as_ref();
    match term.head {
        Head::Atom { ty, .. } | Head::Zero(ty) => Some(tables.types.get(ty).clone()),
        Head::Op { op, result } => {
            let args: Option<Vec<&TensorType>> = (0..term.args.len()).map(arg).collect();
            match tables.ops.get(op).infer(&args?) {
                Ok(InferredTypes::Types(types)) => types.into_iter().nth(usize::from(result)),
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
