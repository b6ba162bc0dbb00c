//! Work stealing among a device's workers, so that an interrupted core does not delay others.
//!
//! Every worker takes pieces from the front of its own share, to read memory in sequence, then from the back of other
//! shares.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A worker's remaining pieces `front..back` in its latest division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Left {
    division: u32,
    front: u16,
    back: u16,
}

impl Left {
    const fn pack(self) -> u64 {
        (self.division as u64) << 32 | (self.front as u64) << 16 | self.back as u64
    }

    const fn unpack(bits: u64) -> Left {
        Left {
            division: (bits >> 32) as u32,
            front: (bits >> 16) as u16,
            back: bits as u16,
        }
    }
}

/// A worker's share, in its own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Share(AtomicU64);

impl Share {
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(crate) struct Pieces<'a> {
    shares: &'a [Share],
    index: usize,
    division: u32,
    n: usize,
    grain: usize,
}

impl<'a> Pieces<'a> {
    /// Divides `n` items, about `grain` at a time, and returns worker `index`'s pieces. All workers pass the same
    /// `n`, `grain` and `division`. `division` must increase.
    pub(crate) fn new(
        shares: &'a [Share],
        index: usize,
        division: u32,
        n: usize,
        grain: usize,
    ) -> Pieces<'a> {
        let most = usize::from(u16::MAX);
        Pieces {
            shares,
            index,
            division,
            n,
            grain: grain.max(1).max(n.div_ceil(most)),
        }
    }

    fn first(&self, of: usize) -> Left {
        let pieces = self.n.div_ceil(self.grain);
        let at = |i: usize| (pieces * i / self.shares.len()) as u16;
        Left {
            division: self.division,
            front: at(of),
            back: at(of + 1),
        }
    }

    /// Takes a piece of worker `of`, from the front if `of` is this worker, otherwise from the back.
    fn piece_of(&self, of: usize) -> Option<usize> {
        let share = &self.shares[of].0;
        let mut bits = share.load(Ordering::Relaxed);
        loop {
            let mut left = Left::unpack(bits);
            if left.division > self.division {
                // The worker began a later division, so this one is done.
                return None;
            }
            if left.division < self.division {
                left = self.first(of);
            }
            if left.front >= left.back {
                return None;
            }
            let piece = if of == self.index {
                left.front += 1;
                left.front - 1
            } else {
                left.back -= 1;
                left.back
            };
            match share.compare_exchange_weak(
                bits,
                left.pack(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(usize::from(piece)),
                Err(now) => bits = now,
            }
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let workers = self.shares.len();
        let piece = (0..workers).find_map(|i| self.piece_of((self.index + i) % workers))?;
        Some(piece * self.grain..self.n.min((piece + 1) * self.grain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(n: usize) -> Vec<Share> {
        (0..n).map(|_| Share::default()).collect()
    }

    #[test]
    fn one_worker_alone_does_everything_in_order_of_its_share_first() {
        let shares = shares(2);
        let ranges: Vec<_> = Pieces::new(&shares, 1, 1, 10, 2).collect();
        assert_eq!(ranges, [4..6, 6..8, 8..10, 2..4, 0..2]);
        assert_eq!(Pieces::new(&shares, 0, 1, 10, 2).next(), None);
        assert_eq!(Pieces::new(&shares, 0, 2, 10, 2).next(), Some(0..2));
        assert_eq!(Pieces::new(&shares, 0, 1, 10, 2).next(), None);
    }

    #[test]
    fn every_thing_is_done_once_by_threads() {
        for workers in 1..5 {
            let shares = shares(workers);
            for (division, n) in [0, 1, 7, 1000, 100_000].into_iter().enumerate() {
                let done: Vec<AtomicU64> = (0..n).map(|_| AtomicU64::new(0)).collect();
                std::thread::scope(|scope| {
                    for index in 0..workers {
                        let (shares, done) = (&shares, &done);
                        scope.spawn(move || {
                            let division = division as u32 + 1;
                            for piece in Pieces::new(shares, index, division, n, 1) {
                                for i in piece {
                                    done[i].fetch_add(1, Ordering::Relaxed);
                                }
                            }
                        });
                    }
                });
                assert!(done.iter().all(|d| d.load(Ordering::Relaxed) == 1));
            }
        }
    }
}
