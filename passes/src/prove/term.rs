//! Terms: the language of the e-graph, and what is known of a class of equal terms.

use std::collections::HashMap;
use std::hash::Hash;

use egg::{Analysis, DidMerge, EGraph, Id, Language};
use tpc_ir::op::Inferred;
use tpc_ir::{Dim, Interval, Op, RANK, TensorType};

use super::pick::Picks;

/// What a term is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Head {
    /// A value that is given: a leaf of the model, or a value of an earlier region. The number is that of its type.
    Given {
        /// Which.
        number: u32,
        /// The number of its type.
        ty: u32,
    },
    /// A result of an op.
    Op {
        /// The number of the op.
        op: u32,
        /// Which result.
        result: u8,
    },
    /// A [`View`] of the argument.
    View(u32),
    /// The sum of the arguments, all of one shape, in the order of their classes' ages.
    Plus,
    /// Zeros of a type.
    Zero(u32),
    /// The first argument in those rows whose index, of the second argument, lies in a window; zero in others. Index
    /// `i` of axis `a` of the indices is about axis `a + 1`.
    Only(Window),
}

/// Some of the rows or experts that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Window {
    /// Which.
    pub(super) run: Interval,
    /// How many there are.
    pub(super) total: u64,
}

/// Picked elements under given sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct View {
    /// Which elements.
    pub(super) picks: Picks,
    /// The sizes under which they are seen.
    pub(super) dims: [Dim; RANK],
}

/// A head and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Term {
    pub(super) head: Head,
    pub(super) args: Vec<Id>,
}

impl Language for Term {
    type Discriminant = Head;

    fn discriminant(&self) -> Head {
        self.head
    }

    fn matches(&self, other: &Self) -> bool {
        self.head == other.head && self.args.len() == other.args.len()
    }

    fn children(&self) -> &[Id] {
        &self.args
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.args
    }
}

/// Dense numbers for distinct items, in order of first use.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    items: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered {
            items: Vec::new(),
            numbers: HashMap::new(),
        }
    }
}

impl<T: Eq + Hash + Clone> Numbered<T> {
    /// The number of an item.
    pub(super) fn number(&mut self, item: &T) -> u32 {
        if let Some(&n) = self.numbers.get(item) {
            return n;
        }
        let n = self.items.len() as u32;
        self.items.push(item.clone());
        self.numbers.insert(item.clone(), n);
        n
    }
}

impl<T> Numbered<T> {
    pub(super) fn items(&self) -> &[T] {
        &self.items
    }

    pub(super) fn get(&self, number: u32) -> &T {
        &self.items[number as usize]
    }
}

/// The ops, views and types that terms speak of by number.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) ops: Numbered<Op>,
    pub(super) views: Numbered<View>,
    pub(super) types: Numbered<TensorType>,
}

/// What is known of a class of equal terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    /// Their type; `None` for terms that have none, as their op does not take its arguments.
    pub(super) ty: Option<TensorType>,
    /// When the first of them was made.
    pub(super) age: u32,
    /// The model's value that they are, by number.
    pub(super) model: Option<u32>,
}

/// The e-graph's analysis.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) tables: Tables,
    /// Two terms of different types were found equal, which sound rules do not do.
    pub(super) contradiction: bool,
}

impl Analysis<Term> for Facts {
    type Data = Fact;

    fn make(graph: &mut EGraph<Term, Facts>, term: &Term, id: Id) -> Fact {
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

fn type_of(graph: &EGraph<Term, Facts>, term: &Term) -> Option<TensorType> {
    let tables = &graph.analysis.tables;
    let arg = |i: usize| graph[term.args[i]].data.ty.as_ref();
    match term.head {
        Head::Given { ty, .. } | Head::Zero(ty) => Some(tables.types.get(ty).clone()),
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
        Head::Plus | Head::Only(_) => arg(0).cloned(),
    }
}
