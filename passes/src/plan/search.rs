//! The search over compatible sets of options of one region: exact where the sets are few, else part by part.

use super::options::{SplitOption, clash};
use super::price::{Price, Pricer};
use super::region::Region;

/// Sets that are priced one by one at most; regions with more are searched part by part.
const EXACT_LIMIT: usize = 1000;
/// Sets of one part that are priced in turn at most.
const PART_LIMIT: usize = 64;
/// Passes over the parts at most.
const ROUNDS: usize = 3;

/// The cheapest set that was found.
pub(super) struct Found<'b> {
    /// Its price.
    pub(super) price: Price,
    /// The options, without those that were fixed.
    pub(super) set: Vec<&'b SplitOption>,
    /// Sets that were priced.
    pub(super) priced: u64,
    /// Whether all were.
    pub(super) optimal: bool,
}

/// Every set of pairwise compatible ones among `items`, the empty set first; at most `limit`, and whether these are
/// all.
pub(super) fn independent_sets(
    items: &[usize],
    limit: usize,
    conflict: &dyn Fn(usize, usize) -> bool,
) -> (Vec<Vec<usize>>, bool) {
    // Positions in `items`, so that sets ascend.
    let mut out: Vec<Vec<usize>> = vec![Vec::new()];
    let mut i = 0;
    while i < out.len() {
        let from = out[i].last().map_or(0, |&l| l + 1);
        for next in from..items.len() {
            if out[i].iter().all(|&o| !conflict(items[o], items[next])) {
                if out.len() >= limit {
                    return (out, false);
                }
                let mut set = out[i].clone();
                set.push(next);
                out.push(set);
            }
        }
        i += 1;
    }
    (out, true)
}

/// The cheapest set of `options` beside `fixed`; `None` when not even the empty set can be carried out.
pub(super) fn search<'b>(
    pricer: &Pricer<'_>,
    region: &Region,
    fixed: &[&'b SplitOption],
    options: &[&'b SplitOption],
) -> Option<Found<'b>> {
    let n = options.len();
    let mut conflicts = vec![false; n * n];
    for a in 0..n {
        for b in 0..n {
            conflicts[a * n + b] = a != b && clash(pricer.analysis, options[a], options[b]);
        }
    }
    let conflict = |a: usize, b: usize| conflicts[a * n + b];
    let mut priced = 0;
    let mut price = |set: &[usize]| {
        priced += 1;
        let all: Vec<&SplitOption> = fixed
            .iter()
            .copied()
            .chain(set.iter().map(|&i| options[i]))
            .collect();
        pricer.price(region, &all)
    };
    let cheaper = |a: &Price, b: &Option<(Price, Vec<usize>)>| {
        b.as_ref()
            .is_none_or(|(b, _)| a.objective < b.objective * (1.0 - 1e-9))
    };
    let everything: Vec<usize> = (0..n).collect();
    let (sets, complete) = independent_sets(&everything, EXACT_LIMIT, &conflict);
    let mut best: Option<(Price, Vec<usize>)> = None;
    if complete {
        for set in sets {
            if let Some(p) = price(&set)
                && cheaper(&p, &best)
            {
                best = Some((p, set));
            }
        }
    } else {
        best = price(&[]).map(|p| (p, Vec::new()));
        let parts = parts(n, &conflict);
        for _ in 0..ROUNDS {
            let before = best.as_ref().map(|(_, set)| set.clone());
            for part in &parts {
                let (sets, _) = independent_sets(part, PART_LIMIT, &conflict);
                let rest: Vec<usize> = match &best {
                    Some((_, set)) => set.iter().copied().filter(|i| !part.contains(i)).collect(),
                    None => Vec::new(),
                };
                for set in sets {
                    let mut set: Vec<usize> = set
                        .iter()
                        .map(|&i| part[i])
                        .chain(rest.iter().copied())
                        .collect();
                    set.sort_unstable();
                    if let Some(p) = price(&set)
                        && cheaper(&p, &best)
                    {
                        best = Some((p, set));
                    }
                }
            }
            if before == best.as_ref().map(|(_, set)| set.clone()) {
                break;
            }
        }
    }
    let (price, set) = best?;
    let set = set.into_iter().map(|i| options[i]).collect();
    Some(Found {
        price,
        set,
        priced,
        optimal: complete,
    })
}

/// The connected parts of the conflict graph: options of different parts never exclude each other.
fn parts(n: usize, conflict: &dyn Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut left: Vec<usize> = (0..n).collect();
    let mut out: Vec<Vec<usize>> = Vec::new();
    while let Some(&start) = left.first() {
        let mut part = vec![start];
        left.remove(0);
        let mut i = 0;
        while i < part.len() {
            let (meets, others): (Vec<usize>, Vec<usize>) = left
                .iter()
                .copied()
                .partition(|&next| conflict(part[i], next));
            part.extend(meets);
            left = others;
            i += 1;
        }
        part.sort_unstable();
        out.push(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_and_parts() {
        // 0 excludes 1, 2 stands alone.
        let conflict = |a: usize, b: usize| a + b == 1;
        let (sets, complete) = independent_sets(&[0, 1, 2], 100, &conflict);
        assert!(complete);
        assert_eq!(
            sets,
            [vec![], vec![0], vec![1], vec![2], vec![0, 2], vec![1, 2]]
        );
        assert!(!independent_sets(&[0, 1, 2], 3, &conflict).1);
        assert_eq!(parts(3, &conflict), [vec![0, 1], vec![2]]);
    }
}
