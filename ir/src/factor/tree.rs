use super::label::Label;
use super::space::{MAX_SEGMENTS, Node, Space, Var};
use super::unify_error::UnifyError;
use crate::sharding::{AxisTree, ClassRef};

/// The class that splits the first factor, and the number of factors it covers.
pub type SplitOf<'a> = dyn Fn(&[Var]) -> Option<(ClassRef, usize)> + 'a;

impl Space {
    /// Adds the variables of a sharding's tree. Unsplit leaves are [`Label::Whole`].
    pub fn import(&mut self, tree: &AxisTree) -> Var {
        match tree {
            AxisTree::Leaf { size, split } => {
                self.leaf_with_label(size.clone(), split.map_or(Label::Whole, Label::Split))
            }
            AxisTree::Product(k) => {
                let parts = k.iter().map(|t| self.import(t)).collect();
                self.product(parts)
            }
            AxisTree::Sum(k) => {
                let parts = k.iter().map(|t| self.import(t)).collect();
                self.sum(parts)
            }
        }
    }

    /// Returns the factors of a product, major first, flattened and without factors of 1.
    pub fn factors(&self, seq: &[Var]) -> Vec<Var> {
        let mut out = Vec::with_capacity(seq.len());
        self.expand_into(seq, &mut out);
        out
    }

    fn expand_into(&self, seq: &[Var], out: &mut Vec<Var>) {
        for &v in seq {
            let v = self.find(v);
            let data = &self.vars[v.index()];
            match &data.node {
                _ if data.size.is_one() => {}
                Node::Product(k) => self.expand_into(k, out),
                _ => out.push(v),
            }
        }
    }

    /// Returns the flattened segments of a sum; `None` if `v` is not a sum.
    pub fn segments(&self, v: Var) -> Option<Vec<Var>> {
        let v = self.find(v);
        let Node::Sum(_) = &self.vars[v.index()].node else {
            return None;
        };
        let mut out = Vec::new();
        self.each_segment(v, &mut |s| out.push(s));
        Some(out)
    }

    fn segment_count(&self, v: Var) -> usize {
        let mut n = 0;
        self.each_segment(v, &mut |_| n += 1);
        n
    }

    fn each_segment(&self, v: Var, visit: &mut dyn FnMut(Var)) {
        // An explicit stack with the next variable last, because a chain of sums is as deep as it is long.
        let mut open = vec![self.find(v)];
        while let Some(v) = open.pop() {
            match &self.vars[v.index()].node {
                Node::Sum(k) => open.extend(k.iter().rev().map(|&s| self.only_factor(s))),
                _ => visit(v),
            }
        }
    }

    /// Returns the only factor other than 1; otherwise `v` itself.
    fn only_factor(&self, v: Var) -> Var {
        let v = self.find(v);
        match &self.vars[v.index()].node {
            Node::Product(_) => match self.factors(&[v]).as_slice() {
                [one] => *one,
                _ => v,
            },
            _ => v,
        }
    }

    pub(super) fn check_segment_count(&mut self, segments: &[Var]) -> Result<(), UnifyError> {
        let mut n = 0;
        for &s in segments {
            n += self.segment_count(s);
            self.visit(n)?;
            if n > MAX_SEGMENTS {
                return Err(UnifyError::Segments(n));
            }
        }
        Ok(())
    }

    /// Returns the number of [summands](Self::summands).
    pub fn summand_count(&self, v: Var) -> u64 {
        let mut out = 1_u64;
        for f in self.factors(&[v]) {
            if let Some(segments) = self.segments(f) {
                let each = segments.iter().map(|&s| self.summand_count(s));
                out = out.saturating_mul(each.fold(0, u64::saturating_add));
            }
        }
        out
    }

    /// Appends the leaves below `v` to `out`, in order.
    pub fn leaves(&self, v: Var, out: &mut Vec<Var>) {
        let mut open = vec![v];
        while let Some(v) = open.pop() {
            let v = self.find(v);
            let data = &self.vars[v.index()];
            match &data.node {
                _ if data.size.is_one() => {}
                Node::Product(k) | Node::Sum(k) => open.extend(k.iter().rev()),
                Node::Leaf(_) | Node::Alias(_) => out.push(v),
            }
        }
    }

    /// Distributes products over sums: one list of leaves (major first) per term, in order.
    pub fn summands(&self, v: Var) -> Vec<Vec<Var>> {
        let mut out = vec![Vec::new()];
        for f in self.factors(&[v]) {
            match self.segments(f) {
                None => out.iter_mut().for_each(|t| t.push(f)),
                Some(segments) => {
                    let alternatives: Vec<Vec<Var>> =
                        segments.iter().flat_map(|&s| self.summands(s)).collect();
                    out = out
                        .iter()
                        .flat_map(|t| {
                            alternatives
                                .iter()
                                .map(|a| t.iter().chain(a).copied().collect())
                        })
                        .collect();
                }
            }
        }
        out
    }

    /// Returns the sharding's tree of `v`. `split` receives the factors of a product from a leaf on, and returns the
    /// class and the number of factors that it covers.
    pub fn export(&self, v: Var, split: &SplitOf<'_>) -> AxisTree {
        let factors = self.factors(&[v]);
        let mut out = Vec::new();
        let mut i = 0;
        while i < factors.len() {
            let f = factors[i];
            if let Some(segments) = self.segments(f) {
                out.push(AxisTree::Sum(
                    segments.iter().map(|&s| self.export(s, split)).collect(),
                ));
                i += 1;
            } else if let Some((class, taken)) = split(&factors[i..]) {
                let size = self.product_size(&factors[i..i + taken]);
                out.push(AxisTree::Leaf {
                    size,
                    split: Some(class),
                });
                i += taken;
            } else {
                out.push(AxisTree::whole(self.size(f).clone()));
                i += 1;
            }
        }
        match out.len() {
            1 => out.remove(0),
            _ => AxisTree::Product(out),
        }
    }
}
