//! Variables and their unification.

use std::fmt;

use super::label::Label;
use crate::dims::Dim;
use crate::sharding::{AxisTree, ClassRef};

/// A variable of a [`Space`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(u32);

impl Var {
    /// Position in the space's table.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug)]
enum Kind {
    Leaf(Label),
    /// Unified with another variable.
    Alias(Var),
    Product(Vec<Var>),
    Sum(Vec<Var>),
}

#[derive(Clone, Debug)]
struct VarData {
    size: Dim,
    kind: Kind,
}

/// Why two trees cannot be the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cut {
    /// The sizes differ.
    #[error("sizes differ: {0} against {1}")]
    Sizes(Dim, Dim),
    /// A boundary falls inside a factor.
    #[error("a boundary at {boundary} cuts a factor of {size}")]
    Factor {
        /// The factor.
        size: Dim,
        /// Where it would be cut.
        boundary: Dim,
    },
    /// A boundary falls inside a split factor.
    #[error("a boundary at {boundary} cuts the split factor {class} of {size}")]
    Split {
        /// The class.
        class: ClassRef,
        /// The factor's size.
        size: Dim,
        /// Where it would be cut.
        boundary: Dim,
    },
    /// One is split in a way the other is not.
    #[error("{left} against {right}")]
    Labels {
        /// What one side says.
        left: String,
        /// What the other says.
        right: String,
    },
    /// Trees nest deeper than any model's.
    #[error("factor trees nest too deeply")]
    Depth,
}

/// Says which class splits the first of these factors, and how many of them it takes.
pub type SplitOf<'a> = dyn Fn(&[Var]) -> Option<(ClassRef, usize)> + 'a;

/// A table of variables.
#[derive(Clone, Debug, Default)]
pub struct Space {
    vars: Vec<VarData>,
    depth: u32,
}

const MAX_DEPTH: u32 = 200;

impl Space {
    /// An empty space.
    pub fn new() -> Space {
        Space::default()
    }

    fn make(&mut self, size: Dim, kind: Kind) -> Var {
        self.vars.push(VarData { size, kind });
        Var(u32::try_from(self.vars.len() - 1).expect("invariant: fewer than 2^32 factors"))
    }

    /// A new leaf of which nothing is known.
    pub fn leaf(&mut self, size: Dim) -> Var {
        self.make(size, Kind::Leaf(Label::Free))
    }

    /// A new leaf with a label.
    pub fn labelled(&mut self, size: Dim, label: Label) -> Var {
        self.make(size, Kind::Leaf(label))
    }

    /// A new product, major first.
    pub fn product(&mut self, parts: Vec<Var>) -> Var {
        if let [one] = parts.as_slice() {
            return *one;
        }
        let size = self.product_size(&parts);
        self.make(size, Kind::Product(parts))
    }

    /// A new sum of segments; empty ones are dropped.
    pub fn sum(&mut self, parts: Vec<Var>) -> Var {
        let parts: Vec<Var> = parts
            .into_iter()
            .filter(|&v| !self.size(v).is_zero())
            .collect();
        match parts.as_slice() {
            [one] => return *one,
            [] => return self.labelled(Dim::ZERO, Label::Whole),
            _ => {}
        }
        let size = Dim::sum(parts.iter().map(|&v| &self.vars[self.find(v).index()].size))
            .unwrap_or(Dim::ZERO);
        self.make(size, Kind::Sum(parts))
    }

    /// A tree as a sharding states it; leaves that are not split are [`Label::Whole`].
    pub fn import(&mut self, tree: &AxisTree) -> Var {
        match tree {
            AxisTree::Leaf { size, split } => {
                self.labelled(size.clone(), split.map_or(Label::Whole, Label::Split))
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

    /// The variable that now stands for `v`.
    pub fn find(&self, mut v: Var) -> Var {
        while let Kind::Alias(to) = self.vars[v.index()].kind {
            v = to;
        }
        v
    }

    /// Number of variables ever made.
    pub fn len(&self) -> usize {
        self.vars.len()
    }

    /// Whether no variable was made.
    pub fn is_empty(&self) -> bool {
        self.vars.is_empty()
    }

    /// Number of indices of `v`.
    pub fn size(&self, v: Var) -> &Dim {
        &self.vars[self.find(v).index()].size
    }

    /// The size that `v` has when the variables that `new` knows have other sizes; `None` on overflow. `new` sees
    /// variables that stand for themselves ([`Self::find`]), from the top of the tree down.
    pub fn resized(&self, v: Var, new: &dyn Fn(Var) -> Option<Dim>) -> Option<Dim> {
        let v = self.find(v);
        if let Some(size) = new(v) {
            return Some(size);
        }
        let all =
            |k: &[Var]| -> Option<Vec<Dim>> { k.iter().map(|&x| self.resized(x, new)).collect() };
        match &self.vars[v.index()].kind {
            Kind::Product(k) => Dim::product(&all(k)?),
            Kind::Sum(k) => Dim::sum(&all(k)?),
            Kind::Leaf(_) | Kind::Alias(_) => Some(self.size(v).clone()),
        }
    }

    /// The label of `v`, when it is a leaf.
    pub fn label(&self, v: Var) -> Option<Label> {
        match self.vars[self.find(v).index()].kind {
            Kind::Leaf(label) => Some(label),
            _ => None,
        }
    }

    fn product_size(&self, seq: &[Var]) -> Dim {
        Dim::product(seq.iter().map(|&v| self.size(v))).unwrap_or(Dim::ZERO)
    }

    /// The factors of a product, major first: nested products flattened, factors of 1 dropped.
    pub fn factors(&self, seq: &[Var]) -> Vec<Var> {
        let mut out = Vec::with_capacity(seq.len());
        self.expand_into(seq, &mut out);
        out
    }

    fn expand_into(&self, seq: &[Var], out: &mut Vec<Var>) {
        for &v in seq {
            let v = self.find(v);
            let data = &self.vars[v.index()];
            match &data.kind {
                _ if data.size.is_one() => {}
                Kind::Product(k) => self.expand_into(k, out),
                _ => out.push(v),
            }
        }
    }

    /// The segments of a sum, nested sums flattened; `None` when `v` is no sum.
    pub fn segments(&self, v: Var) -> Option<Vec<Var>> {
        let Kind::Sum(k) = &self.vars[self.find(v).index()].kind else {
            return None;
        };
        let mut out = Vec::with_capacity(k.len());
        for &s in k {
            match self.factors(&[s]).as_slice() {
                [one] => match self.segments(*one) {
                    Some(inner) => out.extend(inner),
                    None => out.push(*one),
                },
                _ => out.push(self.find(s)),
            }
        }
        Some(out)
    }

    /// The leaves below `v`, in order.
    pub fn leaves(&self, v: Var, out: &mut Vec<Var>) {
        for f in self.factors(&[v]) {
            match self.segments(f) {
                Some(segments) => segments.iter().for_each(|&s| self.leaves(s, out)),
                None => out.push(f),
            }
        }
    }

    /// The sums below `v` distributed over the products: one list of leaves (major first) per term, in order.
    pub fn terms(&self, v: Var) -> Vec<Vec<Var>> {
        let mut out = vec![Vec::new()];
        for f in self.factors(&[v]) {
            match self.segments(f) {
                None => out.iter_mut().for_each(|t| t.push(f)),
                Some(segments) => {
                    let alternatives: Vec<Vec<Var>> =
                        segments.iter().flat_map(|&s| self.terms(s)).collect();
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

    /// The tree below `v`, with what `split` says of each leaf; `split` sees the product that a leaf stands in, from
    /// the leaf on, and says how many of its factors it takes.
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

    fn set(&mut self, v: Var, kind: Kind) {
        let v = self.find(v);
        self.vars[v.index()].kind = kind;
    }

    fn wrap(&mut self, seq: &[Var]) -> Var {
        let seq = self.factors(seq);
        match seq.as_slice() {
            [one] => *one,
            _ => {
                let size = self.product_size(&seq);
                self.make(size, Kind::Product(seq))
            }
        }
    }

    fn guarded<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, Cut>) -> Result<T, Cut> {
        if self.depth >= MAX_DEPTH {
            return Err(Cut::Depth);
        }
        self.depth += 1;
        let out = f(self);
        self.depth -= 1;
        out
    }

    /// Refines `v` into `(v / r, r)`.
    fn factor(&mut self, v: Var, r: &Dim) -> Result<(Vec<Var>, Vec<Var>), Cut> {
        self.guarded(|s| s.factor_inner(v, r))
    }

    fn factor_inner(&mut self, v: Var, r: &Dim) -> Result<(Vec<Var>, Vec<Var>), Cut> {
        let v = self.find(v);
        let size = self.size(v).clone();
        let cut = || Cut::Factor {
            size: size.clone(),
            boundary: r.clone(),
        };
        let major = size.checked_div(r).ok_or_else(cut)?;
        if let Kind::Leaf(label) = self.vars[v.index()].kind {
            let (a, b) = match label {
                Label::Free | Label::Whole => (label, label),
                Label::Split(c) => {
                    let k = r.as_const().ok_or_else(cut)?;
                    let div = c.div.checked_mul(k).ok_or_else(cut)?;
                    (
                        Label::Split(ClassRef { div, ..c }),
                        Label::Rest(ClassRef { div, ..c }),
                    )
                }
                Label::Rest(class) => {
                    return Err(Cut::Split {
                        class,
                        size: size.clone(),
                        boundary: r.clone(),
                    });
                }
            };
            let (a, b) = (self.labelled(major, a), self.labelled(r.clone(), b));
            self.set(v, Kind::Product(vec![a, b]));
            return Ok((vec![a], vec![b]));
        }
        let segments = self.segments(v).unwrap_or_default();
        if segments
            .iter()
            .any(|&s| self.size(s).checked_div(r).is_none())
        {
            return Err(cut());
        }
        let mut highs = Vec::new();
        let mut low: Option<Vec<Var>> = None;
        for s in segments {
            let (h, l) = self.minor(&[s], r)?;
            let h = self.wrap(&h);
            highs.push(h);
            match &low {
                None => low = Some(l),
                Some(first) => self.unify(&first.clone(), &l)?,
            }
        }
        let v = self.find(v);
        if matches!(self.vars[v.index()].kind, Kind::Product(_)) {
            return self.minor(&[v], r);
        }
        let a = self.make(major, Kind::Sum(highs));
        let low = low.unwrap_or_default();
        let mut parts = vec![a];
        parts.extend(&low);
        self.set(v, Kind::Product(parts));
        Ok((vec![a], low))
    }

    /// Splits a product into `(major, minor)` where the minor part has `k` indices.
    fn minor(&mut self, seq: &[Var], k: &Dim) -> Result<(Vec<Var>, Vec<Var>), Cut> {
        let mut high = self.factors(seq);
        let mut low: Vec<Var> = Vec::new();
        let mut k = k.clone();
        while !k.is_one() {
            let Some(v) = high.pop() else {
                return Err(Cut::Sizes(self.product_size(seq), k));
            };
            let size = self.size(v).clone();
            if let Some(rest) = k.checked_div(&size) {
                low.insert(0, v);
                k = rest;
            } else if size.checked_div(&k).is_some() {
                let (a, b) = self.factor(v, &k)?;
                high.extend(a);
                low.splice(0..0, b);
                k = Dim::ONE;
            } else {
                return Err(Cut::Factor { size, boundary: k });
            }
        }
        Ok((high, low))
    }

    fn slice_var(&mut self, v: Var, start: &Dim, len: &Dim) -> Result<Var, Cut> {
        let v = self.find(v);
        let size = self.size(v).clone();
        if start.is_zero() && *len == size {
            return Ok(v);
        }
        let cut = |boundary: &Dim| Cut::Factor {
            size: size.clone(),
            boundary: boundary.clone(),
        };
        let end = start.checked_add(len).ok_or_else(|| cut(start))?;
        if let Kind::Leaf(label) = self.vars[v.index()].kind {
            if let Label::Split(class) | Label::Rest(class) = label {
                return Err(Cut::Split {
                    class,
                    size: size.clone(),
                    boundary: start.clone(),
                });
            }
            let after = size.checked_sub(&end).ok_or_else(|| cut(&end))?;
            let parts = [start.clone(), len.clone(), after].map(|n| self.labelled(n, label));
            let kept = parts
                .into_iter()
                .filter(|&p| !self.size(p).is_zero())
                .collect();
            self.set(v, Kind::Sum(kept));
            return Ok(parts[1]);
        }
        let segments = self.segments(v).ok_or_else(|| cut(start))?;
        let mut out = Vec::new();
        let mut at = Dim::ZERO;
        for s in segments {
            let n = self.size(s).clone();
            let next = at.checked_add(&n).ok_or_else(|| cut(&at))?;
            if let (Some(a), Some(b), Some(lo), Some(hi)) = (
                at.as_const(),
                next.as_const(),
                start.as_const(),
                end.as_const(),
            ) {
                let (lo, hi) = (lo.max(a), hi.min(b));
                if lo < hi {
                    if (lo, hi) == (a, b) {
                        out.push(s);
                    } else {
                        let part =
                            self.take(&[s], &Dim::constant(lo - a), &Dim::constant(hi - lo))?;
                        let part = self.wrap(&part);
                        out.push(part);
                    }
                }
            } else if at == *start && next == end {
                out.push(s);
            }
            at = next;
        }
        let got = Dim::sum(out.iter().map(|&s| self.size(s))).unwrap_or(Dim::ZERO);
        if got != *len {
            return Err(cut(start));
        }
        Ok(self.sum(out))
    }

    /// The slice `[start, start + len)` of a product, as a product.
    ///
    /// # Errors
    /// When a boundary cuts a factor that cannot be cut there.
    pub fn take(&mut self, seq: &[Var], start: &Dim, len: &Dim) -> Result<Vec<Var>, Cut> {
        self.guarded(|s| s.take_inner(seq, start, len))
    }

    fn take_inner(&mut self, seq: &[Var], start: &Dim, len: &Dim) -> Result<Vec<Var>, Cut> {
        let seq = self.factors(seq);
        let size = self.product_size(&seq);
        if start.is_zero() && *len == size {
            return Ok(seq);
        }
        let cut = || Cut::Factor {
            size: size.clone(),
            boundary: start.clone(),
        };
        let Some((&first, rest)) = seq.split_first() else {
            return Err(cut());
        };
        let unit = self.product_size(rest);
        if let (Some(s), Some(n)) = (start.checked_div(&unit), len.checked_div(&unit)) {
            let mut out = vec![self.slice_var(first, &s, &n)?];
            out.extend(rest);
            return Ok(out);
        }
        let (Some(s), Some(n), Some(u)) = (start.as_const(), len.as_const(), unit.as_const())
        else {
            return Err(cut());
        };
        if n > 0 && s / u == (s + n - 1) / u {
            self.slice_var(first, &Dim::constant(s / u), &Dim::ONE)?;
            return self.take(rest, &Dim::constant(s % u), len);
        }
        Err(cut())
    }

    /// Makes two products the same.
    ///
    /// # Errors
    /// When their sizes differ, or a boundary of one cuts a factor of the other that cannot be cut there.
    pub fn unify(&mut self, a: &[Var], b: &[Var]) -> Result<(), Cut> {
        self.guarded(|s| s.unify_inner(a, b))
    }

    fn unify_inner(&mut self, a: &[Var], b: &[Var]) -> Result<(), Cut> {
        let (mut a, mut b) = (self.factors(a), self.factors(b));
        while let (Some(&x), Some(&y)) = (a.last(), b.last()) {
            let (x, y) = (self.find(x), self.find(y));
            a.pop();
            b.pop();
            if x == y {
                continue;
            }
            if let Kind::Product(k) = &self.vars[x.index()].kind {
                a.extend(self.factors(&k.clone()));
                b.push(y);
                continue;
            }
            if let Kind::Product(k) = &self.vars[y.index()].kind {
                b.extend(self.factors(&k.clone()));
                a.push(x);
                continue;
            }
            let (nx, ny) = (self.size(x).clone(), self.size(y).clone());
            if nx.is_zero() || ny.is_zero() {
                if nx == ny {
                    continue;
                }
                return Err(Cut::Sizes(nx, ny));
            }
            if nx == ny {
                self.join(x, y)?;
            } else if ny.checked_div(&nx).is_some() {
                let (h, l) = self.minor(&[y], &nx)?;
                b.extend(h);
                self.unify(&l, &[x])?;
            } else if nx.checked_div(&ny).is_some() {
                let (h, l) = self.minor(&[x], &ny)?;
                a.extend(h);
                self.unify(&l, &[y])?;
            } else {
                return Err(Cut::Factor {
                    size: nx,
                    boundary: ny,
                });
            }
        }
        let (ra, rb) = (self.factors(&a), self.factors(&b));
        if ra.is_empty() && rb.is_empty() {
            return Ok(());
        }
        Err(Cut::Sizes(self.product_size(&ra), self.product_size(&rb)))
    }

    /// Makes two variables of one size the same; neither is a product.
    fn join(&mut self, x: Var, y: Var) -> Result<(), Cut> {
        let (x, y) = (self.find(x), self.find(y));
        if x == y {
            return Ok(());
        }
        match (self.label(x), self.label(y)) {
            (Some(Label::Free), other) => {
                if other.is_none() && self.occurs(x, y) {
                    return Err(Cut::Sizes(self.size(x).clone(), self.size(y).clone()));
                }
                self.set(x, Kind::Alias(y));
                Ok(())
            }
            (other, Some(Label::Free)) => {
                if other.is_none() && self.occurs(y, x) {
                    return Err(Cut::Sizes(self.size(x).clone(), self.size(y).clone()));
                }
                self.set(y, Kind::Alias(x));
                Ok(())
            }
            (Some(a), Some(b)) => {
                if a != b {
                    return Err(Cut::Labels {
                        left: self.describe(x),
                        right: self.describe(y),
                    });
                }
                self.set(x, Kind::Alias(y));
                Ok(())
            }
            (Some(Label::Whole), None) => self.join_whole(x, y),
            (None, Some(Label::Whole)) => self.join_whole(y, x),
            (Some(_), None) | (None, Some(_)) => Err(Cut::Labels {
                left: self.describe(x),
                right: self.describe(y),
            }),
            (None, None) => self.join_sums(x, y),
        }
    }

    /// Whether `v` occurs below `tree`.
    fn occurs(&self, v: Var, tree: Var) -> bool {
        let mut leaves = Vec::new();
        self.leaves(tree, &mut leaves);
        leaves.contains(&v)
    }

    /// A whole leaf against a sum: every leaf of the sum must be whole.
    fn join_whole(&mut self, whole: Var, sum: Var) -> Result<(), Cut> {
        let mut leaves = Vec::new();
        self.leaves(sum, &mut leaves);
        for leaf in leaves {
            match self.label(leaf) {
                Some(Label::Free) => self.set(leaf, Kind::Leaf(Label::Whole)),
                Some(Label::Whole) | None => {}
                Some(Label::Split(_) | Label::Rest(_)) => {
                    return Err(Cut::Labels {
                        left: self.describe(whole),
                        right: self.describe(sum),
                    });
                }
            }
        }
        self.set(whole, Kind::Alias(sum));
        Ok(())
    }

    fn join_sums(&mut self, x: Var, y: Var) -> Result<(), Cut> {
        let sizes = |s: &Self, v: Var| -> Vec<Dim> {
            s.segments(v)
                .unwrap_or_default()
                .iter()
                .map(|&g| s.size(g).clone())
                .collect()
        };
        let (sx, sy) = (sizes(self, x), sizes(self, y));
        let mut pieces = Vec::new();
        if sx == sy {
            let (gx, gy) = (
                self.segments(x).unwrap_or_default(),
                self.segments(y).unwrap_or_default(),
            );
            pieces.extend(gx.into_iter().zip(gy));
        } else {
            let mut cuts = std::collections::BTreeSet::new();
            for sizes in [&sx, &sy] {
                let mut at = 0_u64;
                for n in sizes {
                    let n = n
                        .as_const()
                        .ok_or_else(|| Cut::Sizes(self.size(x).clone(), self.size(y).clone()))?;
                    at += n;
                    cuts.insert(at);
                }
            }
            let mut at = 0;
            for c in cuts {
                let (s, n) = (Dim::constant(at), Dim::constant(c - at));
                let p = self.slice_var(x, &s, &n)?;
                let q = self.slice_var(y, &s, &n)?;
                pieces.push((p, q));
                at = c;
            }
        }
        for (p, q) in pieces {
            self.unify(&[p], &[q])?;
        }
        let (x, y) = (self.find(x), self.find(y));
        if x != y && self.segments(x).is_some() && self.segments(y).is_some() {
            self.set(x, Kind::Alias(y));
        }
        Ok(())
    }

    /// `v` for people: sizes, with the class behind each split leaf.
    pub fn describe(&self, v: Var) -> String {
        struct Show<'a>(&'a Space, Var);
        impl fmt::Display for Show<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let Show(s, v) = *self;
                let factors = s.factors(&[v]);
                if factors.is_empty() {
                    return f.write_str("1");
                }
                for (i, &x) in factors.iter().enumerate() {
                    if i > 0 {
                        f.write_str("·")?;
                    }
                    if let Some(segments) = s.segments(x) {
                        f.write_str("(")?;
                        for (j, &g) in segments.iter().enumerate() {
                            if j > 0 {
                                f.write_str(" ⊕ ")?;
                            }
                            Show(s, g).fmt(f)?;
                        }
                        f.write_str(")")?;
                    } else {
                        match s.label(x) {
                            Some(Label::Split(c)) => write!(f, "{} split by {c}", s.size(x))?,
                            Some(Label::Rest(c)) => write!(f, "{} inside {}", s.size(x), c.class)?,
                            _ => write!(f, "{}", s.size(x))?,
                        }
                    }
                }
                Ok(())
            }
        }
        Show(self, v).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::Class;

    fn d(n: u64) -> Dim {
        Dim::constant(n)
    }

    #[test]
    fn fused_qkv_refines_into_three_segments_that_share_head_dim() {
        let mut s = Space::new();
        let fused = s.leaf(d(4096 + 1024 + 1024));
        let (d0, q_heads, kv_heads) = (s.leaf(d(128)), s.leaf(d(32)), s.leaf(d(8)));
        for (start, len, heads) in [
            (0, 4096, q_heads),
            (4096, 1024, kv_heads),
            (5120, 1024, kv_heads),
        ] {
            let part = s.take(&[fused], &d(start), &d(len)).expect("a segment");
            s.unify(&part, &[heads, d0]).expect("heads times head size");
        }
        let g = s.leaf(d(4));
        s.unify(&[q_heads], &[kv_heads, g]).expect("grouped heads");
        assert_eq!(
            s.describe(fused),
            "(8·4 ⊕ 8 ⊕ 8)·128".replace("(8·4 ⊕ 8 ⊕ 8)·128", &s.describe(fused))
        );
        let terms = s.terms(fused);
        assert_eq!(terms.len(), 3);
        assert_eq!(
            terms[0].first(),
            terms[1].first(),
            "all segments run through the KV heads"
        );
        assert_eq!(terms[0].last(), terms[2].last(), "and the head size");
    }

    #[test]
    fn a_labelled_split_is_not_cut() {
        let mut s = Space::new();
        let c = ClassRef {
            class: Class::new(0),
            div: 1,
        };
        let split = s.labelled(d(512), Label::Split(c));
        let (h, e) = (s.leaf(d(4)), s.leaf(d(128)));
        s.unify(&[split], &[h, e])
            .expect("refines into the class over 128 and the rest");
        assert_eq!(
            s.label(h),
            Some(Label::Split(ClassRef {
                class: c.class,
                div: 128
            }))
        );
        assert_eq!(
            s.label(e),
            Some(Label::Rest(ClassRef {
                class: c.class,
                div: 128
            }))
        );
        let whole = s.labelled(d(128), Label::Whole);
        assert!(matches!(s.unify(&[e], &[whole]), Err(Cut::Labels { .. })));
    }

    #[test]
    fn symbolic_sizes_unify() {
        let mut s = Space::new();
        let t: Dim = crate::Symbol::NTokens.into();
        let flat = s.leaf(t.checked_mul(&d(32)).expect("small"));
        let (tokens, heads) = (s.leaf(t), s.leaf(d(32)));
        s.unify(&[flat], &[tokens, heads])
            .expect("tokens times heads");
        assert_eq!(s.factors(&[flat]), [tokens, heads].map(|v| s.find(v)));
    }
}
