use tpc_ir::random::SplitMix64;
use tpc_ir::{Dim, Interval, Symbol};

use super::axes::{from_axes, locate, per_axis};
use super::composition::{compose, insert, quotient};
use super::{IndexSet, NotExpressible, Pattern};

fn interval(start: u64, len: u64) -> Interval {
    Interval { start, len }
}

fn pattern(unit: u64, size: u64, intervals: &[Interval]) -> Pattern {
    let p = Pattern::new(&unit.into(), size, intervals.iter().copied());
    p.expect("within the size").expect("not everything")
}

fn list(indices: &[Pattern], n: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (0..n).collect();
    // Selecting from major factors first keeps elements of a minor factor adjacent.
    for p in indices.iter().rev() {
        let unit = p.unit.as_const().expect("constant");
        let mut out = Vec::new();
        let period = (unit * p.size) as usize;
        assert!(all.len().is_multiple_of(period), "{all:?} {p:?}");
        for chunk in all.chunks(period) {
            for r in p.intervals.iter() {
                out.extend_from_slice(&chunk[(r.start * unit) as usize..(r.end() * unit) as usize]);
            }
        }
        all = out;
    }
    all
}

#[test]
fn patterns_are_in_lowest_terms() {
    assert_eq!(
        Pattern::new(&Dim::ONE, 8, [interval(0, 3), interval(3, 5)]),
        Ok(None)
    );
    let p = pattern(1, 512, &[interval(0, 256)]);
    assert_eq!(
        (p.unit, p.size, p.intervals),
        (256.into(), 2, [interval(0, 1)].into())
    );
    let p = pattern(1, 8, &[interval(1, 1), interval(5, 1)]);
    assert_eq!((p.size, p.intervals), (4, [interval(1, 1)].into()));
    let p = pattern(1, 8, &[interval(0, 1), interval(3, 2), interval(7, 1)]);
    assert_eq!(
        (p.size, p.intervals),
        (4, [interval(0, 1), interval(3, 1)].into())
    );
    assert_eq!(
        Pattern::new(&Dim::ONE, 8, [interval(7, 2)]),
        Err(NotExpressible)
    );
}

struct Random(SplitMix64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }

    fn indices(&mut self, n: u64) -> IndexSet {
        let divisors: Vec<u64> = (1..=n).filter(|&d| n.is_multiple_of(d)).collect();
        let mut out = IndexSet::new();
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
            let mut intervals = vec![interval(start, 1 + self.below(size - start))];
            if self.below(4) == 0 && start > 1 {
                intervals.insert(0, interval(0, start / 2));
            }
            let mut with = out.clone();
            if let Ok(Some(p)) = Pattern::new(&unit.into(), size, intervals)
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
    let mut random = Random(SplitMix64::new(1));
    let (mut composed, mut inverted) = (0, 0);
    for _ in 0..40_000 {
        let n = [24, 36, 48, 60][random.below(4) as usize];
        let inner = random.indices(n);
        let first = list(&inner, n);
        let outer = random.indices(first.len() as u64);
        let second: Vec<u64> = list(&outer, first.len() as u64)
            .into_iter()
            .map(|i| first[i as usize])
            .collect();
        if let Ok(both) = compose(&inner, &outer) {
            assert_eq!(list(&both, n), second, "{inner:?} then {outer:?}");
            composed += 1;
            if let Ok(back) = quotient(&inner, &both) {
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
fn a_product_is_one_pattern_and_is_split_again() {
    // Elements 1 and 2 of axis 0, and rows 0, 2 and 3 of axis 1, of shape [4, 6].
    let dims = [Dim::constant(4), Dim::constant(6), Dim::ONE, Dim::ONE];
    let axes = [
        Some(pattern(1, 4, &[interval(1, 2)])),
        Some(pattern(1, 6, &[interval(0, 1), interval(2, 2)])),
        None,
        None,
    ];
    let indices = from_axes(&axes, &dims).expect("a product");
    assert_eq!(
        indices,
        [pattern(
            1,
            24,
            &[interval(1, 2), interval(9, 2), interval(13, 2)]
        )]
    );
    assert_eq!(per_axis(&indices, &dims), Ok(axes));
    let other = [pattern(
        1,
        24,
        &[interval(1, 2), interval(9, 2), interval(13, 3)],
    )];
    assert_eq!(per_axis(&other, &dims), Err(NotExpressible));
}

#[test]
fn a_head_of_a_flattened_activation_is_a_head_of_its_4d_form() {
    let tokens: Dim = Symbol::NTokens.into();
    // Heads 2 and 3 of [128, 4, n_tokens], flattened.
    let p = pattern(1, 512, &[interval(256, 256)]);
    let dims = [
        Dim::constant(128),
        Dim::constant(4),
        tokens.clone(),
        Dim::ONE,
    ];
    let (axis, heads) = locate(&p, &dims).expect("an axis");
    assert_eq!((axis, heads.count(&dims[1])), (1, Ok(Dim::constant(2))));
    // The same heads of [n_tokens, 4 · 128], flattened on axis 1.
    let flat = Dim::constant(4).checked_mul(&tokens).expect("small");
    let (axis, heads) = locate(&p, &[128.into(), flat, Dim::ONE, Dim::ONE]).expect("an axis");
    assert_eq!((axis, heads.unit, heads.size), (1, 2.into(), 2));
    let cut = pattern(1, 512, &[interval(0, 64)]);
    assert_eq!(locate(&cut, &dims), Err(NotExpressible));
}
