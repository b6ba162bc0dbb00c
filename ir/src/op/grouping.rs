//! Axes whose indices meet those of another operand in groups: query heads and KV heads, batches and matrices, heads
//! and groups of a scan.

use crate::interval::Interval;

/// Index `i` of the axis `many` meets index `i / (many's size / few's size)` of the axes `few`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grouping {
    /// Operand and axis of the larger number.
    pub many: (usize, usize),
    /// Operands and axes of the smaller number, all split alike.
    pub few: &'static [(usize, usize)],
    /// Operands, where given, with an axis that runs along `many`.
    pub along: &'static [(usize, usize)],
    /// Per result, its axis that runs along `many`.
    pub results: &'static [usize],
}

/// Parts of a device's indices that meet in equal groups: `many` consecutive local indices meet `few` consecutive ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// Local indices of the larger axis.
    pub many: Interval,
    /// Local indices of the smaller axis.
    pub few: Interval,
}

/// Cuts what a device holds into as few pieces as possible, in order; `None` when an index meets one that the device
/// does not hold. `many` and `few` are the global indices that the device holds, `group` indices of `many` meet one of
/// `few` in the whole.
pub fn pieces(many: &[Interval], few: &[Interval], group: u64) -> Option<Vec<Piece>> {
    // The local index of a global one of `few`, and how many from it on are consecutive in both.
    let position = |global: u64| {
        let mut at = 0;
        for r in few {
            if (r.start..r.end()).contains(&global) {
                return Some((at + global - r.start, r.end() - global));
            }
            at += r.len;
        }
        None
    };
    // Pieces, each with the indices of `many` that meet one of `few` in it. Heads may be many: whole groups are
    // counted, not walked through.
    let mut out: Vec<(Piece, u64)> = Vec::new();
    let mut local = 0;
    for r in many {
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
            met(&mut out, local, at, each, count);
            local += each * count;
            global += each * count;
        }
    }
    // Neighbours alike are one piece.
    let mut joined: Vec<(Piece, u64)> = Vec::new();
    for (p, each) in out {
        match joined.last_mut() {
            Some((q, n)) if *n == each && q.few.end() == p.few.start => {
                q.few.len += p.few.len;
                q.many.len += p.many.len;
            }
            _ => joined.push((p, each)),
        }
    }
    Some(joined.into_iter().map(|(p, _)| p).collect())
}

/// `count` indices of `few` from the local index `at` on meet `each` indices of `many`, from the local index `first`
/// on; the first of them may go on with an index that the last piece ends with.
fn met(out: &mut Vec<(Piece, u64)>, first: u64, at: u64, each: u64, count: u64) {
    let piece = |first, at, each, count| {
        let many = Interval {
            start: first,
            len: each * count,
        };
        let few = Interval {
            start: at,
            len: count,
        };
        (Piece { many, few }, each)
    };
    match out.last_mut() {
        Some((p, n)) if p.few.end() == at + 1 => {
            let before = *n;
            p.few.len -= 1;
            p.many.len -= before;
            if p.few.len == 0 {
                out.pop();
            }
            out.push(piece(first - before, at, before + each, 1));
            if count > 1 {
                out.push(piece(first + each, at + 1, each, count - 1));
            }
        }
        _ => out.push(piece(first, at, each, count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: u64, len: u64) -> Interval {
        Interval { start, len }
    }

    #[test]
    fn pieces_are_uniform_and_few() {
        let piece = |a, b, c, d| Piece {
            many: run(a, b),
            few: run(c, d),
        };
        assert_eq!(
            pieces(&[run(0, 8)], &[run(0, 2)], 4),
            Some(vec![piece(0, 8, 0, 2)])
        );
        assert_eq!(
            pieces(&[run(4, 2)], &[run(1, 1)], 4),
            Some(vec![piece(0, 2, 0, 1)])
        );
        let mixed = pieces(&[run(5, 5)], &[run(1, 2)], 4);
        assert_eq!(mixed, Some(vec![piece(0, 3, 0, 1), piece(3, 2, 1, 1)]));
        let parts = pieces(&[run(0, 2), run(4, 2)], &[run(0, 2)], 4);
        assert_eq!(parts, Some(vec![piece(0, 4, 0, 2)]));
        assert_eq!(pieces(&[run(5, 5)], &[run(1, 1)], 4), None);
        assert_eq!(pieces(&[], &[run(0, 2)], 4), Some(vec![]));
    }

    /// The same, index by index.
    fn walked(many: &[Interval], few: &[Interval], group: u64) -> Option<Vec<Piece>> {
        let held: Vec<u64> = few.iter().flat_map(|r| r.start..r.end()).collect();
        let mut met: Vec<(u64, u64)> = Vec::new();
        for global in many.iter().flat_map(|r| r.start..r.end()) {
            let at = held.iter().position(|&f| f == global / group)? as u64;
            match met.last_mut() {
                Some((few, n)) if *few == at => *n += 1,
                _ => met.push((at, 1)),
            }
        }
        let mut out: Vec<(Piece, u64)> = Vec::new();
        let mut start = 0;
        for (few, n) in met {
            match out.last_mut() {
                Some((p, each)) if *each == n && p.few.end() == few => {
                    p.few.len += 1;
                    p.many.len += n;
                }
                _ => out.push((
                    Piece {
                        many: run(start, n),
                        few: run(few, 1),
                    },
                    n,
                )),
            }
            start += n;
        }
        Some(out.into_iter().map(|(p, _)| p).collect())
    }

    #[test]
    fn pieces_are_those_of_a_walk_through_all_indices() {
        let mut state = 1_u64;
        let mut below = |n: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut found = 0;
        for _ in 0..20_000 {
            let group = 1 + below(5);
            let mut runs = |size: u64| -> Vec<Interval> {
                let mut out = Vec::new();
                let mut at = below(3);
                while at < size && below(4) > 0 {
                    let len = (1 + below(size)).min(size - at);
                    out.push(run(at, len));
                    at += len + below(3);
                }
                out
            };
            let (many, few) = (runs(6 * group), runs(6));
            let pieces = pieces(&many, &few, group);
            assert_eq!(
                pieces,
                walked(&many, &few, group),
                "{many:?} {few:?} {group}"
            );
            found += u64::from(pieces.is_some_and(|p| p.len() > 1));
        }
        assert!(found > 500, "{found}");
    }

    #[test]
    fn many_heads_take_no_time() {
        let n = 1 << 40;
        let one = Piece {
            many: run(0, 4 * n),
            few: run(0, n),
        };
        assert_eq!(pieces(&[run(0, 4 * n)], &[run(0, n)], 4), Some(vec![one]));
    }
}
