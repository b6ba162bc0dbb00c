use std::collections::{BTreeMap, BTreeSet};

use egg::{Analysis, DidMerge, EGraph, Id};
use tpc_ir::DType;

use super::language::{Node, Op, Sizes4};
use crate::capture::{Record, packed};
use crate::meta::fault::FaultKind;
use crate::meta::rules::{self, Call, Source};
use crate::meta::silent;
use crate::meta::states::SplitState;
use crate::op::{Family, GgmlOp, Permute};

/// The distribution of a tensor over the devices, with the tensor's strides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Form {
    pub(super) state: SplitState,
    pub(super) nb: Sizes4,
}

const MAX_FORMS: usize = 12;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) ne: Sizes4,
    pub(super) dtype: DType,
    /// The forms that the rules accept for at least one term.
    pub(super) forms: BTreeSet<Form>,
}

/// The rules of ggml, for a graph with these leaves.
#[derive(Clone, Debug, Default)]
pub(super) struct Engine {
    leaves: BTreeMap<usize, (Record, SplitState)>,
}

pub(super) type Terms = EGraph<Node, Engine>;

impl Engine {
    pub(super) fn leaf(&mut self, record: usize, t: &Record, state: &SplitState) {
        let known = || (t.clone(), state.clone());
        self.leaves.entry(record).or_insert_with(known);
    }

    fn kind(egraph: &Terms, node: &Node) -> (Sizes4, DType) {
        let first = |f: &dyn Fn(&Facts) -> Sizes4| {
            let facts = &egraph[node.children[0]].data;
            (f(facts), facts.dtype)
        };
        match &node.op {
            Op::Leaf { record, .. } => {
                let (t, _) = &egraph.analysis.leaves[record];
                (t.ne(), t.dtype)
            }
            Op::Reshape(ne) | Op::View { ne, .. } | Op::Cont(ne) => first(&|_| *ne),
            Op::Permute(axes) => first(&|x| permute_axes(axes, x.ne)),
            Op::Slice { axis, len, .. } => first(&|x| {
                let mut ne = x.ne;
                ne[*axis] = *len;
                ne
            }),
            Op::Compute(c) | Op::Effect { compute: c, .. } => (c.ne, c.dtype),
        }
    }

    /// Returns the form of a term whose children have these forms, if ggml accepts them.
    pub(super) fn form(egraph: &Terms, node: &Node, children: &[&Form]) -> Option<Form> {
        if let Op::Leaf { record, .. } = node.op {
            let (t, state) = &egraph.analysis.leaves[&record];
            return Some(Form {
                state: state.clone(),
                nb: t.layout.nb,
            });
        }
        let (ne, dtype) = Self::kind(egraph, node);
        let facts = |i: usize| &egraph[node.children[i]].data;
        let is_packed = |i: usize| children[i].nb == packed(facts(i).dtype, facts(i).ne);
        let tight = packed(dtype, ne);
        let mut from = 0;
        let permute;
        let (op, nb) = match &node.op {
            Op::Leaf { .. } => return None,
            Op::Reshape(_) => (&GgmlOp::Reshape, is_packed(0).then_some(tight)?),
            Op::Permute(axes) => {
                permute = GgmlOp::Permute(Permute { axes: *axes });
                (&permute, permute_axes(axes, children[0].nb))
            }
            Op::Slice { axis, start, .. } => {
                from = start * children[0].nb[*axis];
                (&GgmlOp::View, children[0].nb)
            }
            Op::View { nb, offset, .. } => {
                from = *offset;
                (&GgmlOp::View, is_packed(0).then_some(*nb)?)
            }
            Op::Cont(_) => (&GgmlOp::Cont, tight),
            Op::Compute(c) | Op::Effect { compute: c, .. } => {
                // Kernels need rows without gaps; elementwise kernels need tensors without gaps.
                let by_rows = |i: usize| children[i].nb[0] == facts(i).dtype.block_bytes();
                let all = c.op.family() == Family::Elementwise;
                if !(0..children.len()).all(|i| by_rows(i) && (!all || is_packed(i))) {
                    return None;
                }
                (&c.op, tight)
            }
        };
        let mut sources = (0..children.len()).map(|i| Source {
            ne: facts(i).ne,
            nb: children[i].nb,
            dtype: facts(i).dtype,
            state: &children[i].state,
        });
        let src = match &node.op {
            Op::Compute(c) | Op::Effect { compute: c, .. } => {
                let of = |&there: &bool| there.then(|| sources.next()).flatten();
                c.present.iter().map(of).collect()
            }
            _ => sources.map(Some).collect(),
        };
        let call = Call {
            op,
            ne,
            nb,
            dtype,
            offset: from,
            src,
        };
        let state = rules::apply(&call).ok()?;
        let silent = silent::faults(&call);
        let right = silent.iter().all(|(kind, _)| *kind != FaultKind::Order);
        right.then_some(Form { state, nb })
    }

    pub(super) fn combinations<'e>(egraph: &'e Terms, node: &Node) -> Vec<Vec<&'e Form>> {
        let mut out: Vec<Vec<&Form>> = vec![Vec::new()];
        for &child in &node.children {
            let forms = &egraph[child].data.forms;
            out = out
                .iter()
                .flat_map(|chosen| {
                    forms.iter().map(|f| {
                        let mut chosen = chosen.clone();
                        chosen.push(f);
                        chosen
                    })
                })
                .take(256)
                .collect();
        }
        out
    }
}

pub(super) fn permute_axes(axes: &[usize; 4], x: Sizes4) -> Sizes4 {
    let mut out = x;
    for (from, &to) in axes.iter().enumerate() {
        out[to] = x[from];
    }
    out
}

impl Analysis<Node> for Engine {
    type Data = Facts;

    fn make(egraph: &mut Terms, node: &Node, _: Id) -> Facts {
        let (ne, dtype) = Engine::kind(egraph, node);
        let combinations = Engine::combinations(egraph, node);
        let forms = combinations
            .iter()
            .filter_map(|c| Engine::form(egraph, node, c));
        Facts {
            ne,
            dtype,
            forms: forms.take(MAX_FORMS).collect(),
        }
    }

    fn merge(&mut self, a: &mut Facts, b: Facts) -> DidMerge {
        let before = a.forms.len();
        let others = b.forms.len();
        for form in b.forms {
            if a.forms.len() < MAX_FORMS {
                a.forms.insert(form);
            }
        }
        DidMerge(a.forms.len() != before, a.forms.len() != others)
    }
}
