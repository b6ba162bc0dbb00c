use std::fmt;

use super::class::ClassData;
use crate::dims::Dim;
use crate::entity::Class;
use crate::interval::Interval;

/// A leaf's class, or the major part of a chain class: its indices divided by `div`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassRef {
    /// The class.
    pub class: Class,
    /// 1, or the size of the omitted minor factors (`g` for `kv` of a chain `kv·g`).
    pub div: u64,
}

impl fmt::Display for ClassRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.div {
            1 => self.class.fmt(f),
            d => write!(f, "{}/{d}", self.class),
        }
    }
}

/// Returns the number of indices in a list of runs.
pub fn total_len(runs: &[Interval]) -> u64 {
    runs.iter().map(|r| r.len).sum()
}

/// Widens the runs to whole blocks of `block` indices and merges touching runs.
pub fn granule_intervals(runs: &[Interval], block: u64) -> Vec<Interval> {
    let mut out: Vec<Interval> = Vec::new();
    for r in runs.iter().filter(|r| r.len > 0) {
        let w = Interval::from_bounds(r.start / block * block, r.end().div_ceil(block) * block);
        match out.last_mut() {
            Some(last) if w.start <= last.end() => {
                *last = Interval::from_bounds(last.start, w.end().max(last.end()));
            }
            _ => out.push(w),
        }
    }
    out
}

/// Maximum number of runs in a device's part of an axis, above the needs of any model and safe for hostile graphs.
pub const MAX_INTERVALS: usize = 1 << 16;

/// An axis as a tree of factors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AxisTree {
    /// A factor, whole on every device or split by a class.
    Leaf {
        /// Number of indices over all devices.
        size: Dim,
        /// The class that splits the factor; `None` if whole.
        split: Option<ClassRef>,
    },
    /// Factors, major first; the index is mixed-radix.
    Product(Vec<AxisTree>),
    /// Segments, in order.
    Sum(Vec<AxisTree>),
}

impl AxisTree {
    /// Returns an unsplit leaf.
    pub const fn whole(size: Dim) -> AxisTree {
        AxisTree::Leaf { size, split: None }
    }

    /// True if any leaf is split.
    pub fn is_split(&self) -> bool {
        match self {
            AxisTree::Leaf { split, .. } => split.is_some(),
            AxisTree::Product(k) | AxisTree::Sum(k) => k.iter().any(AxisTree::is_split),
        }
    }

    /// Returns the tree with its classes replaced by `name`.
    #[must_use]
    pub fn rename_classes(&self, name: &mut dyn FnMut(Class) -> Class) -> AxisTree {
        match self {
            AxisTree::Leaf { size, split } => AxisTree::Leaf {
                size: size.clone(),
                split: split.map(|c| ClassRef {
                    class: name(c.class),
                    ..c
                }),
            },
            AxisTree::Product(k) => {
                AxisTree::Product(k.iter().map(|t| t.rename_classes(name)).collect())
            }
            AxisTree::Sum(k) => AxisTree::Sum(k.iter().map(|t| t.rename_classes(name)).collect()),
        }
    }

    /// Returns the number of indices over all devices; `None` on overflow.
    pub fn size(&self) -> Option<Dim> {
        match self {
            AxisTree::Leaf { size, .. } => Some(size.clone()),
            AxisTree::Product(k) => k
                .iter()
                .try_fold(Dim::ONE, |acc, t| acc.checked_mul(&t.size()?)),
            AxisTree::Sum(k) => k
                .iter()
                .try_fold(Dim::ZERO, |acc, t| acc.checked_add(&t.size()?)),
        }
    }

    /// Returns the number of indices on device `rank`.
    pub fn local_size(&self, classes: &[ClassData], rank: usize) -> Option<Dim> {
        match self {
            AxisTree::Leaf { size, split: None } => Some(size.clone()),
            AxisTree::Leaf { split: Some(c), .. } => Some(Dim::constant(
                classes.get(c.class.index())?.range(rank, c.div)?.len,
            )),
            AxisTree::Product(k) => k.iter().try_fold(Dim::ONE, |acc, t| {
                acc.checked_mul(&t.local_size(classes, rank)?)
            }),
            AxisTree::Sum(k) => k.iter().try_fold(Dim::ZERO, |acc, t| {
                acc.checked_add(&t.local_size(classes, rank)?)
            }),
        }
    }

    /// Returns the global indices on device `rank`, ascending. `None` if a size is symbolic or there are more than
    /// [`MAX_INTERVALS`] runs.
    pub fn intervals(&self, classes: &[ClassData], rank: usize) -> Option<Vec<Interval>> {
        self.runs_by(&|c| classes.get(c.class.index())?.range(rank, c.div))
    }

    /// Returns the [`Self::intervals`] of the indices whose primary owner is device `rank`.
    pub fn owned_runs(&self, classes: &[ClassData], rank: usize) -> Option<Vec<Interval>> {
        self.runs_by(&|c| classes.get(c.class.index())?.owned_range(rank, c.div))
    }

    fn runs_by(&self, range: &dyn Fn(ClassRef) -> Option<Interval>) -> Option<Vec<Interval>> {
        let mut out: Vec<Interval> = Vec::new();
        let mut push = |start: u64, len: u64| -> Option<()> {
            let end = start.checked_add(len)?;
            let full = out.len() >= MAX_INTERVALS;
            match out.last_mut() {
                _ if len == 0 => {}
                Some(last) if last.end() == start => *last = Interval::from_bounds(last.start, end),
                _ if full => return None,
                _ => out.push(Interval { start, len }),
            }
            Some(())
        };
        match self {
            AxisTree::Leaf { size, split: None } => push(0, size.as_const()?)?,
            AxisTree::Leaf { split: Some(c), .. } => {
                let r = range(*c)?;
                push(r.start, r.len)?;
            }
            AxisTree::Sum(k) => {
                let mut at = 0_u64;
                for t in k {
                    for r in t.runs_by(range)? {
                        push(at.checked_add(r.start)?, r.len)?;
                    }
                    at = at.checked_add(t.size()?.as_const()?)?;
                }
            }
            AxisTree::Product(k) => {
                let Some((last, major)) = k.split_last() else {
                    return Some(vec![Interval { start: 0, len: 1 }]);
                };
                let n = last.size()?.as_const()?;
                let minor = last.runs_by(range)?;
                let major = AxisTree::Product(major.to_vec()).runs_by(range)?;
                if minor.as_slice() == [(Interval { start: 0, len: n })] {
                    for r in major {
                        push(r.start.checked_mul(n)?, r.len.checked_mul(n)?)?;
                    }
                } else if !minor.is_empty() {
                    for i in major.iter().flat_map(|r| r.start..r.end()) {
                        for m in &minor {
                            push(i.checked_mul(n)?.checked_add(m.start)?, m.len)?;
                        }
                    }
                }
            }
        }
        Some(out)
    }

    /// Returns the maximum number of runs in a device's part, computed from the tree's form alone.
    pub fn most_runs(&self) -> u64 {
        match self {
            AxisTree::Leaf { .. } => 1,
            AxisTree::Sum(k) => k
                .iter()
                .map(AxisTree::most_runs)
                .fold(0, u64::saturating_add),
            AxisTree::Product(k) => {
                let (mut runs, mut before) = (1_u64, 1_u64);
                for t in k {
                    if t.is_split() {
                        runs = before.saturating_mul(t.most_runs());
                    }
                    let size = t.size().and_then(|d| d.as_const()).unwrap_or(1);
                    before = before.saturating_mul(size);
                }
                runs
            }
        }
    }

    /// Flattens nested products and sums, and merges unsplit subtrees into leaves.
    #[must_use]
    pub fn simplify(&self) -> AxisTree {
        let whole = |t: &AxisTree| match t {
            AxisTree::Leaf { size, split: None } => Some(size.clone()),
            _ => None,
        };
        match self {
            AxisTree::Leaf { .. } => self.clone(),
            AxisTree::Product(k) => {
                let mut out: Vec<AxisTree> = Vec::new();
                for t in k.iter().map(AxisTree::simplify) {
                    let parts = if let AxisTree::Product(p) = t {
                        p
                    } else {
                        vec![t]
                    };
                    for t in parts {
                        let size = whole(&t);
                        if size.as_ref().is_some_and(Dim::is_one) {
                            continue;
                        }
                        match (out.last().and_then(whole), size) {
                            (Some(a), Some(b)) if a.checked_mul(&b).is_some() => {
                                let n = a.checked_mul(&b).unwrap_or(Dim::ONE);
                                out.pop();
                                out.push(AxisTree::whole(n));
                            }
                            _ => out.push(t),
                        }
                    }
                }
                match out.len() {
                    0 => AxisTree::whole(Dim::ONE),
                    1 => out.remove(0),
                    _ => AxisTree::Product(out),
                }
            }
            AxisTree::Sum(k) => {
                let mut out: Vec<AxisTree> = Vec::new();
                for t in k.iter().map(AxisTree::simplify) {
                    let parts = if let AxisTree::Sum(p) = t { p } else { vec![t] };
                    for t in parts {
                        let size = whole(&t);
                        if size.as_ref().is_some_and(Dim::is_zero) {
                            continue;
                        }
                        match (out.last().and_then(whole), size) {
                            (Some(a), Some(b)) if a.checked_add(&b).is_some() => {
                                let n = a.checked_add(&b).unwrap_or(Dim::ZERO);
                                out.pop();
                                out.push(AxisTree::whole(n));
                            }
                            _ => out.push(t),
                        }
                    }
                }
                match out.len() {
                    0 => AxisTree::whole(Dim::ZERO),
                    1 => out.remove(0),
                    _ => AxisTree::Sum(out),
                }
            }
        }
    }

    /// Appends the classes that split the tree, in order of appearance.
    pub fn classes(&self, out: &mut Vec<ClassRef>) {
        match self {
            AxisTree::Leaf { split, .. } => out.extend(split),
            AxisTree::Product(k) | AxisTree::Sum(k) => k.iter().for_each(|t| t.classes(out)),
        }
    }
}

/// Prints a split leaf as its class, with `:size` for a part of the class, and other leaves as sizes (`c0*128 + 64`).
impl fmt::Display for AxisTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>,
                    k: &[AxisTree],
                    sep: &str,
                    paren: fn(&AxisTree) -> bool| {
            for (i, t) in k.iter().enumerate() {
                if i > 0 {
                    f.write_str(sep)?;
                }
                if paren(t) {
                    write!(f, "({t})")?;
                } else {
                    write!(f, "{t}")?;
                }
            }
            Ok(())
        };
        match self {
            AxisTree::Leaf { split: Some(c), .. } => c.fmt(f),
            AxisTree::Leaf { size, split: None } if size.as_const().is_none() => {
                write!(f, "[{size}]")
            }
            AxisTree::Leaf { size, split: None } => size.fmt(f),
            AxisTree::Product(k) => list(f, k, "*", |t| !matches!(t, AxisTree::Leaf { .. })),
            AxisTree::Sum(k) => list(f, k, " + ", |t| matches!(t, AxisTree::Sum(_))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(size: u64, cuts: &[(u64, u64)]) -> ClassData {
        ClassData {
            name: "t".into(),
            size,
            ranges: cuts
                .iter()
                .map(|&(a, b)| Interval::from_bounds(a, b))
                .collect(),
        }
    }

    #[test]
    fn runs_of_sums_and_minor_factors() {
        let classes = [class(4, &[(0, 1), (1, 4)])];
        let c = AxisTree::Leaf {
            size: Dim::constant(4),
            split: Some(ClassRef {
                class: Class::new(0),
                div: 1,
            }),
        };
        let major = AxisTree::Product(vec![c.clone(), AxisTree::whole(Dim::constant(2))]);
        let minor = AxisTree::Product(vec![AxisTree::whole(Dim::constant(2)), c]);
        let both = AxisTree::Sum(vec![major, minor]);
        let runs: Vec<_> = both
            .intervals(&classes, 0)
            .expect("const")
            .iter()
            .map(|r| (r.start, r.len))
            .collect();
        assert_eq!(runs, [(0, 2), (8, 1), (12, 1)]);
        let runs: Vec<_> = both
            .intervals(&classes, 1)
            .expect("const")
            .iter()
            .map(|r| (r.start, r.len))
            .collect();
        assert_eq!(runs, [(2, 6), (9, 3), (13, 3)]);
    }

    #[test]
    fn no_part_has_more_runs_than_its_tree_says() {
        let classes = [class(4, &[(0, 1), (1, 4)])];
        let split = AxisTree::Leaf {
            size: Dim::constant(4),
            split: Some(ClassRef {
                class: Class::new(0),
                div: 1,
            }),
        };
        let whole = |n: u64| AxisTree::whole(Dim::constant(n));
        let major = AxisTree::Product(vec![split.clone(), whole(2)]);
        let minor = AxisTree::Product(vec![whole(3), split.clone(), whole(2)]);
        let both = AxisTree::Sum(vec![major.clone(), minor.clone(), whole(5)]);
        for (tree, most) in [(&split, 1), (&major, 1), (&minor, 3), (&both, 5)] {
            assert_eq!(tree.most_runs(), most, "{tree}");
            for rank in 0..2 {
                let runs = tree.intervals(&classes, rank).expect("constant sizes");
                assert!(runs.len() as u64 <= most, "{tree}");
            }
        }
    }

    #[test]
    fn overlapping_projection_has_one_owner() {
        let c = class(8, &[(0, 3), (3, 4), (4, 8)]);
        assert_eq!(c.range(1, 4), Some(Interval { start: 0, len: 1 }));
        assert_eq!(c.owned_range(1, 4).map(|r| r.len), Some(0));
        assert_eq!(c.owned_range(2, 4), Some(Interval { start: 1, len: 1 }));
        assert!(c.overlaps(4) && !c.overlaps(1));
    }
}
