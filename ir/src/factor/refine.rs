use super::label::Label;
use super::space::{MAX_SEGMENTS, Node, Space, Var};
use super::unify_error::UnifyError;
use crate::dims::Dim;
use crate::sharding::ClassRef;

type Halves = (Vec<Var>, Vec<Var>);

impl Space {
    fn split_off(&mut self, v: Var, r: &Dim) -> Result<Halves, UnifyError> {
        self.with_depth_limit(|s| s.split_off_inner(v, r))
    }

    fn split_off_inner(&mut self, v: Var, r: &Dim) -> Result<Halves, UnifyError> {
        let v = self.find(v);
        let size = self.size(v).clone();
        let cut = || UnifyError::Factor {
            size: size.clone(),
            boundary: r.clone(),
        };
        let major = size.checked_div(r).ok_or_else(cut)?;
        if let Node::Leaf(label) = self.vars[v.index()].node {
            let (a, b) = match label {
                Label::Free | Label::Whole => (label, label),
                Label::Split(c) => {
                    let k = r.as_const().ok_or_else(cut)?;
                    let div = c.div.checked_mul(k).ok_or_else(cut)?;
                    (
                        Label::Split(ClassRef { div, ..c }),
                        Label::Minor(ClassRef { div, ..c }),
                    )
                }
                Label::Minor(class) => {
                    return Err(UnifyError::Split {
                        class,
                        size: size.clone(),
                        boundary: r.clone(),
                    });
                }
            };
            let (a, b) = (
                self.leaf_with_label(major, a),
                self.leaf_with_label(r.clone(), b),
            );
            self.set(v, Node::Product(vec![a, b]));
            return Ok((vec![a], vec![b]));
        }
        let segments = self.segments(v).unwrap_or_default();
        self.visit(segments.len())?;
        if segments
            .iter()
            .any(|&s| self.size(s).checked_div(r).is_none())
        {
            return Err(cut());
        }
        let mut highs = Vec::new();
        let mut low: Option<Vec<Var>> = None;
        for s in segments {
            let (h, l) = self.split_minor(&[s], r)?;
            let h = self.wrap(&h);
            highs.push(h);
            match &low {
                None => low = Some(l),
                Some(first) => self.unify(&first.clone(), &l)?,
            }
        }
        let v = self.find(v);
        if matches!(self.vars[v.index()].node, Node::Product(_)) {
            return self.split_minor(&[v], r);
        }
        let a = self.make(major, Node::Sum(highs));
        let low = low.unwrap_or_default();
        let mut parts = vec![a];
        parts.extend(&low);
        self.set(v, Node::Product(parts));
        Ok((vec![a], low))
    }

    pub(super) fn split_minor(&mut self, seq: &[Var], k: &Dim) -> Result<Halves, UnifyError> {
        let mut high = self.factors(seq);
        let mut low: Vec<Var> = Vec::new();
        let mut k = k.clone();
        while !k.is_one() {
            let Some(v) = high.pop() else {
                return Err(UnifyError::Sizes(self.product_size(seq), k));
            };
            let size = self.size(v).clone();
            if let Some(rest) = k.checked_div(&size) {
                low.insert(0, v);
                k = rest;
            } else if size.checked_div(&k).is_some() {
                let (a, b) = self.split_off(v, &k)?;
                high.extend(a);
                low.splice(0..0, b);
                k = Dim::ONE;
            } else {
                return Err(UnifyError::Factor { size, boundary: k });
            }
        }
        Ok((high, low))
    }

    /// Returns the segment `[start, start + len)` of `v`; `v` becomes a sum.
    pub(super) fn slice_var(&mut self, v: Var, start: &Dim, len: &Dim) -> Result<Var, UnifyError> {
        let v = self.find(v);
        let size = self.size(v).clone();
        if start.is_zero() && *len == size {
            return Ok(v);
        }
        let cut = |boundary: &Dim| UnifyError::Factor {
            size: size.clone(),
            boundary: boundary.clone(),
        };
        let end = start.checked_add(len).ok_or_else(|| cut(start))?;
        if let Node::Leaf(label) = self.vars[v.index()].node {
            if let Label::Split(class) | Label::Minor(class) = label {
                return Err(UnifyError::Split {
                    class,
                    size: size.clone(),
                    boundary: start.clone(),
                });
            }
            let after = size.checked_sub(&end).ok_or_else(|| cut(&end))?;
            let parts = [start.clone(), len.clone(), after].map(|n| self.leaf_with_label(n, label));
            let kept = parts
                .into_iter()
                .filter(|&p| !self.size(p).is_zero())
                .collect();
            self.set(v, Node::Sum(kept));
            return Ok(parts[1]);
        }
        let segments = self.segments(v).ok_or_else(|| cut(start))?;
        self.visit(segments.len())?;
        if segments.len() > MAX_SEGMENTS {
            return Err(UnifyError::Segments(segments.len()));
        }
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
                            self.slice(&[s], &Dim::constant(lo - a), &Dim::constant(hi - lo))?;
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

    /// Returns the slice `[start, start + len)` of a product, as a product.
    ///
    /// # Errors
    /// Returns an error if a factor cannot be cut at a boundary.
    pub fn slice(&mut self, seq: &[Var], start: &Dim, len: &Dim) -> Result<Vec<Var>, UnifyError> {
        self.with_depth_limit(|s| s.slice_inner(seq, start, len))
    }

    fn slice_inner(&mut self, seq: &[Var], start: &Dim, len: &Dim) -> Result<Vec<Var>, UnifyError> {
        let seq = self.factors(seq);
        let size = self.product_size(&seq);
        if start.is_zero() && *len == size {
            return Ok(seq);
        }
        let cut = || UnifyError::Factor {
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
            return self.slice(rest, &Dim::constant(s % u), len);
        }
        Err(cut())
    }
}
