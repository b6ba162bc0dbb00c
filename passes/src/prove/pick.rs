//! Which elements of a tensor a device has: arithmetic on picks.
//!
//! A [`Pick`] speaks of a tensor's elements in their order in memory, so it survives every reshape. Sizes may be
//! symbolic, the indices that are picked are constants.

use tpc_ir::{Dim, Interval, RANK};

use crate::gcd::gcd;

/// Two things that do not go together: what was asked cannot be said with picks, or is not so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unrelated;

pub(super) type Related<T> = Result<T, Unrelated>;

/// Runs beyond which a pick is not worth the arithmetic.
const MAX_INTERVALS: usize = 1 << 14;

/// Of every `unit · size` consecutive elements, those whose index divided by `unit` lies in `runs`, in the order of
/// the runs. Always in lowest terms ([`Pick::new`]), so that equal picks compare equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Pick {
    /// Elements that are picked or left together.
    pub(super) unit: Dim,
    /// Units after which the pattern starts over.
    pub(super) size: u64,
    /// The units that are picked.
    pub(super) runs: Vec<Interval>,
}

impl Pick {
    /// The pick in lowest terms; `None` when everything is picked.
    pub(super) fn new(
        unit: &Dim,
        size: u64,
        runs: impl IntoIterator<Item = Interval>,
    ) -> Related<Option<Pick>> {
        let mut merged: Vec<Interval> = Vec::new();
        for r in runs {
            match merged.last_mut() {
                _ if r.len == 0 => {}
                Some(last) if last.end() == r.start => last.len += r.len,
                _ => merged.push(r),
            }
        }
        if merged.len() > MAX_INTERVALS || merged.iter().any(|r| r.end() > size) {
            return Err(Unrelated);
        }
        let (mut size, mut runs) = (size, merged);
        while let Some((part, of_part)) = shorter_period(size, &runs) {
            (size, runs) = (part, of_part);
        }
        if let [all] = runs.as_slice()
            && all.start == 0
            && all.len == size
        {
            return Ok(None);
        }
        let common = runs
            .iter()
            .fold(size, |g, r| gcd(gcd(g, r.start), r.len))
            .max(1);
        for r in &mut runs {
            r.start /= common;
            r.len /= common;
        }
        let unit = unit.checked_mul(&common.into()).ok_or(Unrelated)?;
        let size = size / common;
        Ok(Some(Pick { unit, size, runs }))
    }

    /// Units that are picked of each period.
    pub(super) fn len(&self) -> u64 {
        self.runs.iter().map(|r| r.len).sum()
    }

    /// Elements after which the pattern starts over.
    pub(super) fn period(&self) -> Related<Dim> {
        self.unit.checked_mul(&self.size.into()).ok_or(Unrelated)
    }

    /// Elements that are left of each period.
    fn kept(&self) -> Related<Dim> {
        self.unit.checked_mul(&self.len().into()).ok_or(Unrelated)
    }

    /// How many of `size` elements are picked, where whole periods make that size.
    pub(super) fn of(&self, size: &Dim) -> Related<Dim> {
        let periods = size.checked_div(&self.period()?).ok_or(Unrelated)?;
        periods.checked_mul(&self.kept()?).ok_or(Unrelated)
    }

    /// The picked indices in units of `unit`, in a period of `period`.
    pub(super) fn refined(&self, unit: &Dim, period: &Dim) -> Related<Vec<Interval>> {
        let fine = constant(&self.unit, unit)?;
        let times = constant(period, &self.period()?)?;
        if (times as usize).saturating_mul(self.runs.len()) > MAX_INTERVALS {
            return Err(Unrelated);
        }
        let size = self.size.checked_mul(fine).ok_or(Unrelated)?;
        let mut out = Vec::with_capacity(self.runs.len() * times as usize);
        for t in 0..times {
            let base = t.checked_mul(size).ok_or(Unrelated)?;
            out.extend(self.runs.iter().map(|r| Interval {
                start: base + r.start * fine,
                len: r.len * fine,
            }));
        }
        Ok(out)
    }

    /// The same pick where one element stands for `by`.
    pub(super) fn scaled(&self, by: &Dim) -> Related<Pick> {
        let unit = self.unit.checked_mul(by).ok_or(Unrelated)?;
        Ok(Pick {
            unit,
            ..self.clone()
        })
    }
}

/// The pattern as a repetition of a shorter one.
fn shorter_period(size: u64, runs: &[Interval]) -> Option<(u64, Vec<Interval>)> {
    let total: u64 = runs.iter().map(|r| r.len).sum();
    if total == 0 || runs.windows(2).any(|w| w[0].end() > w[1].start) {
        return None;
    }
    let both = gcd(size, total);
    (2..=both.min(runs.len() as u64 + 1))
        .filter(|&k| both.is_multiple_of(k))
        .find_map(|k| {
            let part = size / k;
            let first = clipped(runs, 0, part);
            let alike = (1..k).all(|i| clipped(runs, i * part, part) == first);
            alike.then_some((part, first))
        })
}

/// The runs within `len` indices from `start` on, counted from there.
pub(super) fn clipped(runs: &[Interval], start: u64, len: u64) -> Vec<Interval> {
    let mut out: Vec<Interval> = Vec::new();
    for r in runs {
        let (from, to) = (r.start.max(start), r.end().min(start + len));
        if from < to {
            match out.last_mut() {
                Some(last) if last.end() == from - start => last.len += to - from,
                _ => out.push(Interval {
                    start: from - start,
                    len: to - from,
                }),
            }
        }
    }
    out
}

/// The quotient, where it is a constant.
fn constant(size: &Dim, unit: &Dim) -> Related<u64> {
    let quotient = size.checked_div(unit).and_then(|d| d.as_const());
    quotient.ok_or(Unrelated)
}

/// The largest size that divides both, where both are multiples of a common symbol, or constants.
pub(super) fn common_unit(a: &Dim, b: &Dim) -> Related<Dim> {
    if a.checked_div(b).is_some() {
        return Ok(b.clone());
    }
    if b.checked_div(a).is_some() {
        return Ok(a.clone());
    }
    let (m, n) = (a.content(), b.content());
    let monic = a.checked_div(&m.into()).ok_or(Unrelated)?;
    if b.checked_div(&n.into()).as_ref() != Some(&monic) {
        return Err(Unrelated);
    }
    monic.checked_mul(&gcd(m, n).into()).ok_or(Unrelated)
}

/// The smallest size that both divide.
pub(super) fn common_period(a: &Dim, b: &Dim) -> Related<Dim> {
    let unit = common_unit(a, b)?;
    let times = a.checked_div(&unit).ok_or(Unrelated)?;
    times.checked_mul(b).ok_or(Unrelated)
}

/// The indices at these positions of the list that `runs` make.
fn at_positions(runs: &[Interval], positions: &[Interval]) -> Vec<Interval> {
    let mut out = Vec::new();
    for p in positions {
        let mut at = 0;
        for r in runs {
            let from = p.start.clamp(at, at + r.len);
            let to = p.end().clamp(at, at + r.len);
            if from < to {
                out.push(Interval {
                    start: r.start + from - at,
                    len: to - from,
                });
            }
            at += r.len;
        }
    }
    out
}

/// Where the indices `inner` stand in the list that `outer` makes; each of them must be in it.
fn positions(outer: &[Interval], inner: &[Interval]) -> Related<Vec<Interval>> {
    let mut out = Vec::new();
    for i in inner {
        let mut next = i.start;
        while next < i.end() {
            let mut at = 0;
            let mut found = None;
            for o in outer {
                if (o.start..o.end()).contains(&next) {
                    found = Some((at + next - o.start, o.end().min(i.end()) - next));
                    break;
                }
                at += o.len;
            }
            let (start, len) = found.ok_or(Unrelated)?;
            out.push(Interval { start, len });
            next += len;
        }
    }
    Ok(out)
}

/// Whether `minor` is about elements within one unit of `major`.
fn within_unit(minor: &Pick, major: &Pick) -> Related<bool> {
    Ok(major.unit.checked_div(&minor.period()?).is_some())
}

/// Several picks of one tensor, minor factors first. Picks that only constants keep apart are one, so that the same
/// elements are always said in the same way.
pub(super) type Picks = Vec<Pick>;

/// Puts a pick among those of other factors.
fn insert(picks: &mut Picks, pick: Pick) -> Related<()> {
    let mut at = 0;
    while at < picks.len() && within_unit(&picks[at], &pick)? {
        at += 1;
    }
    if at < picks.len() && !within_unit(&pick, &picks[at])? {
        return Err(Unrelated);
    }
    picks.insert(at, pick);
    // The major neighbour first: what is minor to the pair stays where it is.
    for major in [at + 1, at] {
        if major > 0
            && major < picks.len()
            && let Some(one) = product(&picks[major - 1], &picks[major])?
        {
            picks[major - 1] = one;
            picks.remove(major);
        }
    }
    Ok(())
}

/// Both picks as one, where only constants are between them.
fn product(minor: &Pick, major: &Pick) -> Related<Option<Pick>> {
    let Ok(each) = minor.refined(&minor.unit, &major.unit) else {
        return Ok(None);
    };
    let times = constant(&major.unit, &minor.unit)?;
    let size = constant(&major.period()?, &minor.unit)?;
    if each.len() as u64 * major.len() > MAX_INTERVALS as u64 {
        return Ok(None);
    }
    let mut runs = Vec::new();
    for r in &major.runs {
        for unit in r.start..r.end() {
            runs.extend(each.iter().map(|e| Interval {
                start: unit * times + e.start,
                len: e.len,
            }));
        }
    }
    Pick::new(&minor.unit, size, runs)
}

/// A pick as one about what is minor to a size and one about what is major to it, if it is a product of two.
fn divided(pick: &Pick, at: &Dim) -> Related<(Option<Pick>, Option<Pick>)> {
    let unit = common_unit(&pick.unit, at)?;
    let period = common_period(&pick.period()?, at)?;
    let runs = pick.refined(&unit, &period)?;
    let (len, size) = (constant(at, &unit)?, constant(&period, at)?);
    let mut pattern: Option<Vec<Interval>> = None;
    let mut blocks = Vec::new();
    // The blocks that anything is picked of; in each the same must be.
    let mut next = 0;
    while let Some(block) = runs
        .iter()
        .filter(|r| r.end() > next)
        .map(|r| r.start.max(next) / len)
        .min()
    {
        let own = clipped(&runs, block * len, len);
        if *pattern.get_or_insert_with(|| own.clone()) != own {
            return Err(Unrelated);
        }
        blocks.push(Interval {
            start: block,
            len: 1,
        });
        next = (block + 1) * len;
    }
    let Some(pattern) = pattern else {
        return Err(Unrelated);
    };
    let parts = (
        Pick::new(&unit, len, pattern)?,
        Pick::new(at, size, blocks)?,
    );
    // In another order than that of the blocks it is no product.
    let back = match &parts {
        (Some(minor), Some(major)) => product(minor, major)?,
        (one, None) | (None, one) => one.clone(),
    };
    if back.as_ref() == Some(pick) {
        Ok(parts)
    } else {
        Err(Unrelated)
    }
}

/// What is picked by `outer` of what `inner` picks.
pub(super) fn compose(inner: &[Pick], outer: &[Pick]) -> Related<Picks> {
    let mut all = inner.to_vec();
    // Majors first: what is minor to a factor is counted alike before and after the factor is picked from.
    for pick in outer.iter().rev() {
        let mut pick = Some(pick.clone());
        let mut out = Picks::new();
        let mut rest = all.into_iter();
        for p in rest.by_ref() {
            let Some(q) = pick.clone() else {
                out.push(p);
                continue;
            };
            if p.unit.checked_div(&q.period()?).is_some() {
                // All that is left is major to it.
                out.push(p);
                continue;
            }
            let kept = p.kept()?;
            if !kept.is_zero()
                && let Some(times) = q.unit.checked_div(&kept)
            {
                let unit = times.checked_mul(&p.period()?).ok_or(Unrelated)?;
                pick = Some(Pick { unit, ..q });
                out.push(p);
                continue;
            }
            if kept.is_zero() {
                // Nothing of nothing.
                out.push(p);
                pick = None;
                continue;
            }
            let unit = common_unit(&p.unit, &q.unit)?;
            let period = common_period(&kept, &q.period()?)?;
            let times = period.checked_div(&kept).ok_or(Unrelated)?;
            let whole = p.period()?.checked_mul(&times).ok_or(Unrelated)?;
            let list = p.refined(&unit, &whole)?;
            let wanted = q.refined(&unit, &period)?;
            let size = constant(&whole, &unit)?;
            pick = Pick::new(&unit, size, at_positions(&list, &wanted))?;
        }
        if let Some(q) = pick {
            insert(&mut out, q)?;
        }
        all = out;
    }
    Ok(all)
}

/// The picks that make `picks` of what `of` picks: `compose(of, result) == picks`.
pub(super) fn relative(of: &[Pick], picks: &[Pick]) -> Related<Picks> {
    let mut left = picks.to_vec();
    // With the number of factors of `of` that are minor to it.
    let mut found: Vec<(usize, Pick)> = Vec::new();
    for (i, o) in of.iter().enumerate() {
        let mut same = None;
        for (i, p) in left.iter().enumerate() {
            if !within_unit(p, o)? && !within_unit(o, p)? {
                same = Some(i);
                break;
            }
        }
        let p = left.remove(same.ok_or(Unrelated)?);
        let unit = common_unit(&p.unit, &o.unit)?;
        let period = common_period(&p.period()?, &o.period()?)?;
        let outer = o.refined(&unit, &period)?;
        let at = positions(&outer, &p.refined(&unit, &period)?)?;
        let size = outer.iter().map(|r| r.len).sum();
        found.extend(Pick::new(&unit, size, at)?.map(|p| (i, p)));
    }
    found.extend(left.into_iter().map(|p| (of.len(), p)));
    let mut out = Picks::new();
    for (minor, mut p) in found {
        for o in of[..minor].iter().rev() {
            if o.len() > 0
                && let Some(times) = p.unit.checked_div(&o.period()?)
            {
                p.unit = times.checked_mul(&o.kept()?).ok_or(Unrelated)?;
            }
        }
        insert(&mut out, p)?;
    }
    if compose(of, &out)? == picks {
        Ok(out)
    } else {
        Err(Unrelated)
    }
}

/// The factor among `sizes`, minor first, that a pick is about, and the pick within it.
pub(super) fn locate(pick: &Pick, sizes: &[Dim]) -> Related<(usize, Pick)> {
    let period = pick.period()?;
    let mut below = Dim::ONE;
    for (i, size) in sizes.iter().enumerate() {
        let above = below.checked_mul(size).ok_or(Unrelated)?;
        if !size.is_one()
            && let Some(unit) = pick.unit.checked_div(&below)
            && above.checked_div(&period).is_some()
        {
            return Ok((
                i,
                Pick {
                    unit,
                    ..pick.clone()
                },
            ));
        }
        below = above;
    }
    Err(Unrelated)
}

/// The picks per axis of a tensor with these sizes.
pub(super) fn on_axes(picks: &[Pick], dims: &[Dim; RANK]) -> Related<[Option<Pick>; RANK]> {
    let mut out: [Option<Pick>; RANK] = [None, None, None, None];
    let mut open: Vec<Pick> = picks.to_vec();
    while let Some(p) = open.pop() {
        let Ok((axis, own)) = locate(&p, dims) else {
            // About more than one axis: it may be a product of what is picked of each.
            let mut below = Dim::ONE;
            let mut cut = None;
            for size in &dims[..RANK - 1] {
                below = below.checked_mul(size).ok_or(Unrelated)?;
                if let Ok((Some(minor), Some(major))) = divided(&p, &below) {
                    cut = Some([minor, major]);
                    break;
                }
            }
            open.extend(cut.ok_or(Unrelated)?);
            continue;
        };
        if out[axis].replace(own).is_some() {
            return Err(Unrelated);
        }
    }
    Ok(out)
}

/// The picks of a tensor with these sizes, from those per axis.
pub(super) fn from_axes(axes: &[Option<Pick>; RANK], dims: &[Dim; RANK]) -> Related<Picks> {
    let mut out = Picks::new();
    let mut below = Dim::ONE;
    for (pick, size) in axes.iter().zip(dims) {
        if let Some(p) = pick {
            insert(&mut out, p.scaled(&below)?)?;
        }
        below = below.checked_mul(size).ok_or(Unrelated)?;
    }
    Ok(out)
}

/// The sizes that are left of `dims`.
pub(super) fn left_of(axes: &[Option<Pick>; RANK], dims: &[Dim; RANK]) -> Related<[Dim; RANK]> {
    let mut out = dims.clone();
    for (d, pick) in out.iter_mut().zip(axes) {
        if let Some(p) = pick {
            *d = p.of(d)?;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpc_ir::Symbol;

    fn run(start: u64, len: u64) -> Interval {
        Interval { start, len }
    }

    fn pick(unit: u64, size: u64, runs: &[Interval]) -> Pick {
        let p = Pick::new(&unit.into(), size, runs.iter().copied());
        p.expect("within the size").expect("not everything")
    }

    /// The elements that picks leave of the first `n`.
    fn list(picks: &[Pick], n: u64) -> Vec<u64> {
        let mut all: Vec<u64> = (0..n).collect();
        // Majors first, as the elements of a minor factor are next to each other.
        for p in picks.iter().rev() {
            let unit = p.unit.as_const().expect("constant");
            let mut out = Vec::new();
            let period = (unit * p.size) as usize;
            assert!(all.len().is_multiple_of(period), "{all:?} {p:?}");
            for chunk in all.chunks(period) {
                for r in &p.runs {
                    out.extend_from_slice(
                        &chunk[(r.start * unit) as usize..(r.end() * unit) as usize],
                    );
                }
            }
            all = out;
        }
        all
    }

    #[test]
    fn picks_are_in_lowest_terms() {
        assert_eq!(Pick::new(&Dim::ONE, 8, [run(0, 3), run(3, 5)]), Ok(None));
        let p = pick(1, 512, &[run(0, 256)]);
        assert_eq!((p.unit, p.size, p.runs), (256.into(), 2, vec![run(0, 1)]));
        let p = pick(1, 8, &[run(1, 1), run(5, 1)]);
        assert_eq!((p.size, p.runs), (4, vec![run(1, 1)]));
        let p = pick(1, 8, &[run(0, 1), run(3, 2), run(7, 1)]);
        assert_eq!((p.size, p.runs), (4, vec![run(0, 1), run(3, 1)]));
        assert_eq!(Pick::new(&Dim::ONE, 8, [run(7, 2)]), Err(Unrelated));
    }

    /// Random numbers below a bound.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % n
        }

        /// Picks of a tensor of `n` elements, about one or two factors.
        fn picks(&mut self, n: u64) -> Picks {
            let divisors: Vec<u64> = (1..=n).filter(|&d| n.is_multiple_of(d)).collect();
            let mut out = Picks::new();
            for _ in 0..=self.below(2) {
                let unit = divisors[self.below(divisors.len() as u64) as usize];
                let sizes: Vec<u64> = (2..=n / unit)
                    .filter(|&s| n.is_multiple_of(s * unit))
                    .collect();
                if sizes.is_empty() {
                    continue;
                }
                let size = sizes[self.below(sizes.len() as u64) as usize];
                let start = self.below(size);
                let mut runs = vec![run(start, 1 + self.below(size - start))];
                if self.below(4) == 0 && start > 1 {
                    runs.insert(0, run(0, start / 2));
                }
                let mut with = out.clone();
                if let Ok(Some(p)) = Pick::new(&unit.into(), size, runs)
                    && insert(&mut with, p).is_ok()
                {
                    out = with;
                }
            }
            out
        }
    }

    #[test]
    fn composition_is_that_of_the_lists_and_has_an_inverse() {
        let mut random = Random(1);
        let (mut composed, mut inverted) = (0, 0);
        for _ in 0..40_000 {
            let n = [24, 36, 48, 60][random.below(4) as usize];
            let inner = random.picks(n);
            let first = list(&inner, n);
            let outer = random.picks(first.len() as u64);
            let second: Vec<u64> = list(&outer, first.len() as u64)
                .into_iter()
                .map(|i| first[i as usize])
                .collect();
            if let Ok(both) = compose(&inner, &outer) {
                assert_eq!(list(&both, n), second, "{inner:?} then {outer:?}");
                composed += 1;
                if let Ok(back) = relative(&inner, &both) {
                    let again: Vec<u64> = list(&back, first.len() as u64)
                        .into_iter()
                        .map(|i| first[i as usize])
                        .collect();
                    assert_eq!(again, second);
                    inverted += 1;
                }
            }
        }
        assert!(composed > 20_000, "{composed}");
        assert!(inverted > 5_000, "{inverted}");
    }

    #[test]
    fn a_product_is_one_pick_and_is_divided_again() {
        // Of [4, 6] elements 1 and 2 of axis 0, and rows 0, 2 and 3 of axis 1.
        let dims = [Dim::constant(4), Dim::constant(6), Dim::ONE, Dim::ONE];
        let axes = [
            Some(pick(1, 4, &[run(1, 2)])),
            Some(pick(1, 6, &[run(0, 1), run(2, 2)])),
            None,
            None,
        ];
        let picks = from_axes(&axes, &dims).expect("a product");
        assert_eq!(picks, [pick(1, 24, &[run(1, 2), run(9, 2), run(13, 2)])]);
        assert_eq!(on_axes(&picks, &dims), Ok(axes));
        let other = [pick(1, 24, &[run(1, 2), run(9, 2), run(13, 3)])];
        assert_eq!(on_axes(&other, &dims), Err(Unrelated));
    }

    #[test]
    fn a_head_of_a_flattened_activation_is_a_head_of_its_4d_form() {
        let tokens: Dim = Symbol::NTokens.into();
        // Heads 2 and 3 of [128, 4, n_tokens], flattened.
        let p = pick(1, 512, &[run(256, 256)]);
        let dims = [
            Dim::constant(128),
            Dim::constant(4),
            tokens.clone(),
            Dim::ONE,
        ];
        let (axis, heads) = locate(&p, &dims).expect("an axis");
        assert_eq!((axis, heads.of(&dims[1])), (1, Ok(Dim::constant(2))));
        // The same of [n_tokens, 4 · 128] flattened on axis 1.
        let flat = Dim::constant(4).checked_mul(&tokens).expect("small");
        let (axis, heads) = locate(&p, &[128.into(), flat, Dim::ONE, Dim::ONE]).expect("an axis");
        assert_eq!((axis, heads.unit, heads.size), (1, 2.into(), 2));
        let cut = pick(1, 512, &[run(0, 64)]);
        assert_eq!(locate(&cut, &dims), Err(Unrelated));
    }
}
