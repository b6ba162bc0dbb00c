//! Unification: refines two trees at the boundaries of both until they are equal.

use std::collections::BTreeSet;

use super::label::Label;
use super::space::{Node, Space, Var};
use super::unify_error::UnifyError;
use crate::dims::Dim;

impl Space {
    /// Makes two products equal.
    ///
    /// # Errors
    /// Returns an error if their sizes differ, or a factor cannot be cut at a boundary.
    pub fn unify(&mut self, a: &[Var], b: &[Var]) -> Result<(), UnifyError> {
        self.with_depth_limit(|s| s.unify_inner(a, b))
    }

    fn unify_inner(&mut self, a: &[Var], b: &[Var]) -> Result<(), UnifyError> {
        let (mut a, mut b) = (self.factors(a), self.factors(b));
        self.visit(a.len() + b.len())?;
        while let (Some(&x), Some(&y)) = (a.last(), b.last()) {
            let (x, y) = (self.find(x), self.find(y));
            a.pop();
            b.pop();
            if x == y {
                continue;
            }
            if let Node::Product(k) = &self.vars[x.index()].node {
                a.extend(self.factors(&k.clone()));
                b.push(y);
                continue;
            }
            if let Node::Product(k) = &self.vars[y.index()].node {
                b.extend(self.factors(&k.clone()));
                a.push(x);
                continue;
            }
            let (nx, ny) = (self.size(x).clone(), self.size(y).clone());
            if nx.is_zero() || ny.is_zero() {
                if nx == ny {
                    continue;
                }
                return Err(UnifyError::Sizes(nx, ny));
            }
            if nx == ny {
                self.join(x, y)?;
            } else if ny.checked_div(&nx).is_some() {
                let (h, l) = self.split_minor(&[y], &nx)?;
                b.extend(h);
                self.unify(&l, &[x])?;
            } else if nx.checked_div(&ny).is_some() {
                let (h, l) = self.split_minor(&[x], &ny)?;
                a.extend(h);
                self.unify(&l, &[y])?;
            } else {
                return Err(UnifyError::Factor {
                    size: nx,
                    boundary: ny,
                });
            }
        }
        let (ra, rb) = (self.factors(&a), self.factors(&b));
        if ra.is_empty() && rb.is_empty() {
            return Ok(());
        }
        Err(UnifyError::Sizes(
            self.product_size(&ra),
            self.product_size(&rb),
        ))
    }

    fn join(&mut self, x: Var, y: Var) -> Result<(), UnifyError> {
        let (x, y) = (self.find(x), self.find(y));
        if x == y {
            return Ok(());
        }
        match (self.label(x), self.label(y)) {
            (Some(Label::Free), other) => {
                if other.is_none() && self.occurs(x, y) {
                    return Err(UnifyError::Sizes(
                        self.size(x).clone(),
                        self.size(y).clone(),
                    ));
                }
                self.set(x, Node::Alias(y));
                Ok(())
            }
            (other, Some(Label::Free)) => {
                if other.is_none() && self.occurs(y, x) {
                    return Err(UnifyError::Sizes(
                        self.size(x).clone(),
                        self.size(y).clone(),
                    ));
                }
                self.set(y, Node::Alias(x));
                Ok(())
            }
            (Some(a), Some(b)) => {
                if a != b {
                    return Err(UnifyError::Labels {
                        left: self.describe(x),
                        right: self.describe(y),
                    });
                }
                self.set(x, Node::Alias(y));
                Ok(())
            }
            (Some(Label::Whole), None) => self.join_whole(x, y),
            (None, Some(Label::Whole)) => self.join_whole(y, x),
            (Some(_), None) | (None, Some(_)) => Err(UnifyError::Labels {
                left: self.describe(x),
                right: self.describe(y),
            }),
            (None, None) => self.join_sums(x, y),
        }
    }

    fn occurs(&self, v: Var, tree: Var) -> bool {
        let mut leaves = Vec::new();
        self.leaves(tree, &mut leaves);
        leaves.contains(&v)
    }

    fn join_whole(&mut self, whole: Var, sum: Var) -> Result<(), UnifyError> {
        let mut leaves = Vec::new();
        self.leaves(sum, &mut leaves);
        for leaf in leaves {
            match self.label(leaf) {
                Some(Label::Free) => self.set(leaf, Node::Leaf(Label::Whole)),
                Some(Label::Whole) | None => {}
                Some(Label::Split(_) | Label::Minor(_)) => {
                    return Err(UnifyError::Labels {
                        left: self.describe(whole),
                        right: self.describe(sum),
                    });
                }
            }
        }
        self.set(whole, Node::Alias(sum));
        Ok(())
    }

    fn join_sums(&mut self, x: Var, y: Var) -> Result<(), UnifyError> {
        let sizes = |s: &Self, v: Var| -> Vec<Dim> {
            s.segments(v)
                .unwrap_or_default()
                .iter()
                .map(|&g| s.size(g).clone())
                .collect()
        };
        let (sx, sy) = (sizes(self, x), sizes(self, y));
        self.visit(sx.len() + sy.len())?;
        let mut pairs = Vec::new();
        if sx == sy {
            let (gx, gy) = (
                self.segments(x).unwrap_or_default(),
                self.segments(y).unwrap_or_default(),
            );
            pairs.extend(gx.into_iter().zip(gy));
        } else {
            let mut cuts = BTreeSet::new();
            for sizes in [&sx, &sy] {
                let mut at = 0_u64;
                for n in sizes {
                    let n = n.as_const().ok_or_else(|| {
                        UnifyError::Sizes(self.size(x).clone(), self.size(y).clone())
                    })?;
                    at += n;
                    cuts.insert(at);
                }
            }
            let mut at = 0;
            for c in cuts {
                let (s, n) = (Dim::constant(at), Dim::constant(c - at));
                let p = self.slice_var(x, &s, &n)?;
                let q = self.slice_var(y, &s, &n)?;
                pairs.push((p, q));
                at = c;
            }
        }
        for (p, q) in pairs {
            self.unify(&[p], &[q])?;
        }
        let (x, y) = (self.find(x), self.find(y));
        if x != y && self.segments(x).is_some() && self.segments(y).is_some() {
            self.set(x, Node::Alias(y));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::Class;
    use crate::sharding::ClassRef;

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
            let part = s.slice(&[fused], &d(start), &d(len)).expect("a segment");
            s.unify(&part, &[heads, d0]).expect("heads times head size");
        }
        let g = s.leaf(d(4));
        s.unify(&[q_heads], &[kv_heads, g]).expect("grouped heads");
        assert_eq!(s.describe(fused), "(8·4·128 ⊕ 8·128 ⊕ 8·128)");
        let terms = s.summands(fused);
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
        let split = s.leaf_with_label(d(512), Label::Split(c));
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
            Some(Label::Minor(ClassRef {
                class: c.class,
                div: 128
            }))
        );
        let whole = s.leaf_with_label(d(128), Label::Whole);
        assert!(matches!(
            s.unify(&[e], &[whole]),
            Err(UnifyError::Labels { .. })
        ));
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
