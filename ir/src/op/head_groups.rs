//! Head groups: groups of query indices that share one KV index.
//!
//! The terms come from grouped-query attention. Batched matrix products (queries in the right operand) and scans with
//! grouped heads use the same groups.

use crate::interval::Interval;

/// The axes of an op with grouped heads, as (operand, axis). Query head `i` uses KV head
/// `i / (query heads / KV heads)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeadGrouping {
    /// The axis of the query heads.
    pub query: (usize, usize),
    /// The axes of the KV heads, all split in the same way.
    pub kv: &'static [(usize, usize)],
    /// Other axes indexed by query head; absent operands are ignored.
    pub per_query: &'static [(usize, usize)],
    /// The axis of the query heads in each result.
    pub results: &'static [usize],
}

/// Consecutive KV heads of a device with the same number of query heads each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeadGroups {
    /// Local indices of the query heads.
    pub query: Interval,
    /// Local indices of the KV heads.
    pub kv: Interval,
}

/// Splits a device's heads into the smallest number of runs of equal groups, in order.
///
/// `query` and `kv` are the device's global indices, and `group` is the number of query heads per KV head in the
/// model. Returns `None` if a query head uses a KV head of another device.
pub fn head_groups(query: &[Interval], kv: &[Interval], group: u64) -> Option<Vec<HeadGroups>> {
    // The local index of a global KV head, and the number of following KV heads consecutive in both.
    let position = |global: u64| {
        let mut at = 0;
        for r in kv {
            if (r.start..r.end()).contains(&global) {
                return Some((at + global - r.start, r.end() - global));
            }
            at += r.len;
        }
        None
    };
    // Runs, each with its query heads per KV head. Counts groups instead of walking them, because there may be many
    // heads.
    let mut out: Vec<(HeadGroups, u64)> = Vec::new();
    let mut local = 0;
    for r in query {
        let mut global = r.start;
        while global < r.end() {
            let (at, consecutive) = position(global / group)?;
            let whole = (r.end() - global) / group;
            let (each, count) = if global.is_multiple_of(group) && whole > 0 {
                (group, whole.min(consecutive))
            } else {
                let rest = group - global % group;
                (rest.min(r.end() - global), 1)
            };
            append(&mut out, local, at, each, count);
            local += each * count;
            global += each * count;
        }
    }
    Some(join_runs(out))
}

fn join_runs(runs: Vec<(HeadGroups, u64)>) -> Vec<HeadGroups> {
    let mut out: Vec<(HeadGroups, u64)> = Vec::new();
    for (run, each) in runs {
        match out.last_mut() {
            Some((last, n)) if *n == each && last.kv.end() == run.kv.start => {
                last.kv.len += run.kv.len;
                last.query.len += run.query.len;
            }
            _ => out.push((run, each)),
        }
    }
    out.into_iter().map(|(run, _)| run).collect()
}

/// Appends `count` KV heads from local index `at`, each with `each` query heads from local index `first`. If the last
/// run ends with the first of these KV heads, the queries join that run.
fn append(out: &mut Vec<(HeadGroups, u64)>, first: u64, at: u64, each: u64, count: u64) {
    let run = |first, at, each, count| {
        let query = Interval {
            start: first,
            len: each * count,
        };
        let kv = Interval {
            start: at,
            len: count,
        };
        (HeadGroups { query, kv }, each)
    };
    match out.last_mut() {
        Some((last, n)) if last.kv.end() == at + 1 => {
            let before = *n;
            last.kv.len -= 1;
            last.query.len -= before;
            if last.kv.len == 0 {
                out.pop();
            }
            out.push(run(first - before, at, before + each, 1));
            if count > 1 {
                out.push(run(first + each, at + 1, each, count - 1));
            }
        }
        _ => out.push(run(first, at, each, count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    fn interval(start: u64, len: u64) -> Interval {
        Interval { start, len }
    }

    #[test]
    fn runs_are_uniform_and_few() {
        let groups = |a, b, c, d| HeadGroups {
            query: interval(a, b),
            kv: interval(c, d),
        };
        assert_eq!(
            head_groups(&[interval(0, 8)], &[interval(0, 2)], 4),
            Some(vec![groups(0, 8, 0, 2)])
        );
        assert_eq!(
            head_groups(&[interval(4, 2)], &[interval(1, 1)], 4),
            Some(vec![groups(0, 2, 0, 1)])
        );
        let mixed = head_groups(&[interval(5, 5)], &[interval(1, 2)], 4);
        assert_eq!(mixed, Some(vec![groups(0, 3, 0, 1), groups(3, 2, 1, 1)]));
        let parts = head_groups(&[interval(0, 2), interval(4, 2)], &[interval(0, 2)], 4);
        assert_eq!(parts, Some(vec![groups(0, 4, 0, 2)]));
        assert_eq!(head_groups(&[interval(5, 5)], &[interval(1, 1)], 4), None);
        assert_eq!(head_groups(&[], &[interval(0, 2)], 4), Some(vec![]));
    }

    fn walked(query: &[Interval], kv: &[Interval], group: u64) -> Option<Vec<HeadGroups>> {
        let held: Vec<u64> = kv.iter().flat_map(|r| r.start..r.end()).collect();
        let mut met: Vec<(u64, u64)> = Vec::new();
        for global in query.iter().flat_map(|r| r.start..r.end()) {
            let at = held.iter().position(|&f| f == global / group)? as u64;
            match met.last_mut() {
                Some((kv, n)) if *kv == at => *n += 1,
                _ => met.push((at, 1)),
            }
        }
        let mut out: Vec<(HeadGroups, u64)> = Vec::new();
        let mut start = 0;
        for (kv, n) in met {
            match out.last_mut() {
                Some((p, each)) if *each == n && p.kv.end() == kv => {
                    p.kv.len += 1;
                    p.query.len += n;
                }
                _ => out.push((
                    HeadGroups {
                        query: interval(start, n),
                        kv: interval(kv, 1),
                    },
                    n,
                )),
            }
            start += n;
        }
        Some(out.into_iter().map(|(p, _)| p).collect())
    }

    #[test]
    fn runs_are_those_of_a_walk_through_all_indices() {
        let mut random = SplitMix64::new(1);
        let mut below = |n: u64| random.next_u64() % n;
        let mut found = 0;
        for _ in 0..20_000 {
            let group = 1 + below(5);
            let mut held = |size: u64| -> Vec<Interval> {
                let mut out = Vec::new();
                let mut at = below(3);
                while at < size && below(4) > 0 {
                    let len = (1 + below(size)).min(size - at);
                    out.push(interval(at, len));
                    at += len + below(3);
                }
                out
            };
            let (query, kv) = (held(6 * group), held(6));
            let runs = head_groups(&query, &kv, group);
            assert_eq!(runs, walked(&query, &kv, group), "{query:?} {kv:?} {group}");
            found += u64::from(runs.is_some_and(|p| p.len() > 1));
        }
        assert!(found > 500, "{found}");
    }

    #[test]
    fn many_heads_take_no_time() {
        let n = 1 << 40;
        let one = HeadGroups {
            query: interval(0, 4 * n),
            kv: interval(0, n),
        };
        assert_eq!(
            head_groups(&[interval(0, 4 * n)], &[interval(0, n)], 4),
            Some(vec![one])
        );
    }
}
