//! Axes whose indices meet those of another operand in groups: query heads and KV heads, batches and matrices, heads
//! and groups of a scan.

use crate::sharding::Run;

/// Index `i` of the axis `many` meets index `i / (many's size / few's size)` of the axes `few`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Local indices of the larger axis.
    pub many: Run,
    /// Local indices of the smaller axis.
    pub few: Run,
}

/// Cuts what a device holds into as few pieces as possible, in order; `None` when an index meets one that the device
/// does not hold. `many` and `few` are the global indices that the device holds, `group` indices of `many` meet one of
/// `few` in the whole.
pub fn pieces(many: &[Run], few: &[Run], group: u64) -> Option<Vec<Piece>> {
    let position = |global: u64| {
        let mut at = 0;
        for r in few {
            if (r.start..r.end()).contains(&global) {
                return Some(at + global - r.start);
            }
            at += r.len;
        }
        None
    };
    // One entry per index of `few` that is met: (its local index, first local index of `many`, how many).
    let mut met: Vec<(u64, u64, u64)> = Vec::new();
    for (local, global) in many.iter().flat_map(|r| r.start..r.end()).enumerate() {
        let at = position(global / group)?;
        match met.last_mut() {
            Some((few, _, n)) if *few == at => *n += 1,
            _ => met.push((at, local as u64, 1)),
        }
    }
    let mut out: Vec<(Piece, u64)> = Vec::new();
    for (few, first, n) in met {
        match out.last_mut() {
            Some((p, each)) if *each == n && p.few.end() == few => {
                p.few.len += 1;
                p.many.len += n;
            }
            _ => {
                let piece = Piece {
                    many: Run {
                        start: first,
                        len: n,
                    },
                    few: Run { start: few, len: 1 },
                };
                out.push((piece, n));
            }
        }
    }
    Some(out.into_iter().map(|(p, _)| p).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: u64, len: u64) -> Run {
        Run { start, len }
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
}
