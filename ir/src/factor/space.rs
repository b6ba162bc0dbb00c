use super::label::Label;
use super::unify_error::UnifyError;
use crate::dims::Dim;

/// A variable of a [`Space`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(u32);

impl Var {
    /// Returns the position in the space's table.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Leaf(Label),
    Alias(Var),
    /// Factors, major first.
    Product(Vec<Var>),
    /// Segments, in order.
    Sum(Vec<Var>),
}

#[derive(Clone, Debug)]
pub(super) struct VarData {
    pub(super) size: Dim,
    pub(super) node: Node,
}

/// A table of variables: the factors of a graph's axes.
#[derive(Clone, Debug, Default)]
pub struct Space {
    pub(super) vars: Vec<VarData>,
    depth: u32,
    work: u64,
    most_work: Option<u64>,
}

/// Maximum number of segments per axis, above the needs of any model.
pub(super) const MAX_SEGMENTS: usize = 1 << 10;

/// Maximum nesting depth of factors, far above any model's.
const MAX_DEPTH: u32 = 200;

impl Space {
    /// Returns an empty space.
    pub fn new() -> Space {
        Space::default()
    }

    /// Returns an empty space that stops refining after `most` visits.
    pub fn with_limit(most: u64) -> Space {
        Space {
            most_work: Some(most),
            ..Space::default()
        }
    }

    /// Reserves capacity.
    pub fn reserve(&mut self, vars: usize) {
        self.vars.reserve(vars);
    }

    /// Returns the number of visited factors and segments.
    pub const fn work(&self) -> u64 {
        self.work
    }

    pub(super) fn visit(&mut self, n: usize) -> Result<(), UnifyError> {
        self.work = self.work.saturating_add(1 + n as u64);
        match self.most_work {
            Some(most) if self.work > most => Err(UnifyError::Work),
            _ => Ok(()),
        }
    }

    pub(super) fn make(&mut self, size: Dim, node: Node) -> Var {
        self.vars.push(VarData { size, node });
        Var(u32::try_from(self.vars.len() - 1).expect("invariant: fewer than 2^32 factors"))
    }

    /// Adds a leaf labelled [`Label::Free`].
    pub fn leaf(&mut self, size: Dim) -> Var {
        self.make(size, Node::Leaf(Label::Free))
    }

    /// Adds a leaf with a label.
    pub fn leaf_with_label(&mut self, size: Dim, label: Label) -> Var {
        self.make(size, Node::Leaf(label))
    }

    /// Adds a product, major factor first.
    pub fn product(&mut self, parts: Vec<Var>) -> Var {
        if let [one] = parts.as_slice() {
            return *one;
        }
        let size = self.product_size(&parts);
        self.make(size, Node::Product(parts))
    }

    /// Adds a sum; drops empty segments.
    pub fn sum(&mut self, parts: Vec<Var>) -> Var {
        let parts: Vec<Var> = parts
            .into_iter()
            .filter(|&v| !self.size(v).is_zero())
            .collect();
        match parts.as_slice() {
            [one] => return *one,
            [] => return self.leaf_with_label(Dim::ZERO, Label::Whole),
            _ => {}
        }
        let size = Dim::sum(parts.iter().map(|&v| &self.vars[self.find(v).index()].size))
            .unwrap_or(Dim::ZERO);
        self.make(size, Node::Sum(parts))
    }

    /// Returns the variable that represents `v`.
    pub fn find(&self, mut v: Var) -> Var {
        while let Node::Alias(to) = self.vars[v.index()].node {
            v = to;
        }
        v
    }

    /// Points every variable at its representative, so that the chains followed by [`Self::find`] do not grow with
    /// the number of layers.
    pub fn compress(&mut self) {
        for i in 0..self.vars.len() {
            let mut v = Var(u32::try_from(i).expect("invariant: fewer than 2^32 factors"));
            let root = self.find(v);
            while let Node::Alias(to) = self.vars[v.index()].node {
                self.vars[v.index()].node = Node::Alias(root);
                v = to;
            }
        }
    }

    /// Returns the number of variables.
    pub fn len(&self) -> usize {
        self.vars.len()
    }

    /// True if the space is empty.
    pub fn is_empty(&self) -> bool {
        self.vars.is_empty()
    }

    /// Returns the number of indices of `v`.
    pub fn size(&self, v: Var) -> &Dim {
        &self.vars[self.find(v).index()].size
    }

    /// Returns the size of `v` after the variables known to `new` change size; `None` on overflow. `new` receives
    /// representatives ([`Self::find`]), top of the tree first.
    pub fn resize(&self, v: Var, new: &dyn Fn(Var) -> Option<Dim>) -> Option<Dim> {
        let v = self.find(v);
        if let Some(size) = new(v) {
            return Some(size);
        }
        match &self.vars[v.index()].node {
            Node::Product(k) => k
                .iter()
                .try_fold(Dim::ONE, |n, &x| n.checked_mul(&self.resize(x, new)?)),
            Node::Sum(k) => k
                .iter()
                .try_fold(Dim::ZERO, |n, &x| n.checked_add(&self.resize(x, new)?)),
            Node::Leaf(_) | Node::Alias(_) => Some(self.size(v).clone()),
        }
    }

    /// Returns the label of a leaf.
    pub fn label(&self, v: Var) -> Option<Label> {
        match self.vars[self.find(v).index()].node {
            Node::Leaf(label) => Some(label),
            _ => None,
        }
    }

    pub(super) fn product_size(&self, seq: &[Var]) -> Dim {
        Dim::product(seq.iter().map(|&v| self.size(v))).unwrap_or(Dim::ZERO)
    }

    pub(super) fn set(&mut self, v: Var, node: Node) {
        let v = self.find(v);
        self.vars[v.index()].node = node;
    }

    pub(super) fn wrap(&mut self, seq: &[Var]) -> Var {
        let seq = self.factors(seq);
        match seq.as_slice() {
            [one] => *one,
            _ => {
                let size = self.product_size(&seq);
                self.make(size, Node::Product(seq))
            }
        }
    }

    pub(super) fn with_depth_limit<T>(
        &mut self,
        f: impl FnOnce(&mut Self) -> Result<T, UnifyError>,
    ) -> Result<T, UnifyError> {
        if self.depth >= MAX_DEPTH {
            return Err(UnifyError::Depth);
        }
        self.depth += 1;
        let out = f(self);
        self.depth -= 1;
        out
    }
}
