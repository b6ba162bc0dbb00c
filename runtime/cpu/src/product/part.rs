//! The order of a sum over K: sequential in chunks, then a binary tree of chunks.

use super::ProductError;
use std::ops::Range;
use tpc_ir::program::{SUM_BLOCK, SUM_CHUNKS};

/// Elements that share an activation scale. K is cut at multiples of it.
pub const BLOCK: usize = SUM_BLOCK as usize;
/// Number of chunks of K.
pub(super) const CHUNKS: usize = SUM_CHUNKS as usize;

/// A range of K, which determines the order of a product's sum.
///
/// K is `⌈K/32⌉` blocks of 32 in 8 chunks: chunk `c` ends at block `⌊blocks·(c + 1)/8⌋`. Products of a chunk are
/// summed in sequence, and a binary tree adds the chunks. A part that starts and ends at chunks gives one sum, a
/// *root*, for each of its largest subtrees, in the order of K. [`Combination`] adds all roots, so the sum does not
/// depend on the division.
///
/// A part that cuts a chunk ([`Part::ends_at_chunks`] is false) has one root, its plain sum, as after
/// [`Part::plain`]. The bits of a sum over such parts depend on the ends of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    global: usize,
    start: usize,
    end: usize,
    plain: bool,
}

/// Consecutive blocks of a part, summed in sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Segment {
    /// The first block, relative to the part.
    pub start: usize,
    pub end: usize,
    /// Number of earlier sums to add to this one, last first.
    pub merges: usize,
}

/// The segments of a part. Each pushes its sum on a stack, then merges sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    segments: [Segment; CHUNKS],
    count: usize,
    /// Number of sums that remain on the stack.
    pub roots: usize,
}

impl Plan {
    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments[..self.count]
    }
}

/// A node of the tree over chunks: the `index`-th group of `2^level` chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Node {
    level: u32,
    index: usize,
}

/// Maximum number of waiting nodes of a part.
const DEPTH: usize = 6;

/// Nodes that wait for their sibling.
#[derive(Default)]
struct Waiting {
    nodes: [Node; DEPTH],
    count: usize,
}

impl Waiting {
    fn push(&mut self, mut node: Node) -> usize {
        let mut merges = 0;
        while node.index % 2 == 1
            && self.count > 0
            && self.nodes[self.count - 1]
                == (Node {
                    index: node.index - 1,
                    ..node
                })
        {
            self.count -= 1;
            merges += 1;
            node = Node {
                level: node.level + 1,
                index: node.index / 2,
            };
        }
        self.nodes[self.count] = node;
        self.count += 1;
        merges
    }
}

impl Part {
    /// Returns the part with the whole K of `k` elements.
    pub const fn whole(k: usize) -> Part {
        Part {
            global: k,
            start: 0,
            end: k,
            plain: false,
        }
    }

    /// Returns the part with elements `range` of `k`.
    ///
    /// # Errors
    /// Returns [`ProductError::Part`] if the range is empty, reversed, beyond `k`, or cuts a block of 32 that is not
    /// the last.
    pub fn new(k: usize, range: Range<usize>) -> Result<Part, ProductError> {
        let Range { start, end } = range;
        let cut = |at: usize| !at.is_multiple_of(BLOCK) && at != k;
        if start >= end || end > k || cut(start) || cut(end) {
            return Err(ProductError::Part { k, start, end });
        }
        Ok(Part {
            global: k,
            start,
            end,
            plain: false,
        })
    }

    /// Makes the plain sum the only root.
    #[must_use]
    pub const fn plain(mut self) -> Part {
        self.plain = true;
        self
    }

    /// Returns the number of elements of the whole K.
    pub const fn global(&self) -> usize {
        self.global
    }

    /// Returns the index of the part's first element.
    pub const fn start(&self) -> usize {
        self.start
    }

    /// Returns the index after the part's last element.
    pub const fn end(&self) -> usize {
        self.end
    }

    /// Returns the number of elements in the part.
    pub const fn k(&self) -> usize {
        self.end - self.start
    }

    /// Returns the number of blocks of 32; the last may be shorter.
    pub(super) const fn blocks(&self) -> usize {
        self.k().div_ceil(BLOCK)
    }

    /// True if the part starts and ends at chunks. Its sums are then exact subtrees of the whole sum.
    pub fn ends_at_chunks(&self) -> bool {
        self.is_chunk_end(self.start) && self.is_chunk_end(self.end)
    }

    /// Returns the number of sums of a product.
    pub fn roots(&self) -> usize {
        self.plan().roots
    }

    fn is_chunk_end(&self, at: usize) -> bool {
        at == 0
            || at == self.global
            || (0..=CHUNKS).any(|c| chunk_start(self.global, c) * BLOCK == at)
    }

    /// Returns the chunks that are completely in the part. An empty chunk belongs to the part that ends there.
    fn chunks(&self) -> Range<usize> {
        let inside = |c: usize| {
            let end = (chunk_start(self.global, c + 1) * BLOCK).min(self.global);
            end <= self.end && (end > self.start || self.start == 0)
        };
        let first = (0..CHUNKS).find(|&c| inside(c)).unwrap_or(0);
        let last = (0..CHUNKS).rfind(|&c| inside(c)).unwrap_or(first);
        first..last + 1
    }

    pub(super) fn plan(&self) -> Plan {
        let exact = self.ends_at_chunks();
        let mut plan = Plan {
            segments: [Segment::default(); CHUNKS],
            count: 0,
            roots: 1,
        };
        let first = self.start / BLOCK;
        let end = first + self.blocks();
        let mut waiting = Waiting::default();
        let chunks = if exact { self.chunks() } else { 0..CHUNKS };
        for c in chunks {
            let blocks = chunk_start(self.global, c).clamp(first, end)
                ..chunk_start(self.global, c + 1).clamp(first, end);
            if !exact && blocks.is_empty() {
                continue;
            }
            plan.segments[plan.count] = Segment {
                start: blocks.start - first,
                end: blocks.end - first,
                merges: waiting.push(Node { level: 0, index: c }),
            };
            plan.count += 1;
        }
        plan.roots = waiting.count;
        if (self.plain || !exact) && plan.count > 0 {
            plan.segments[plan.count - 1].merges += plan.roots - 1;
            plan.roots = 1;
        }
        plan
    }

    fn nodes(&self) -> Waiting {
        let mut waiting = Waiting::default();
        for index in self.chunks() {
            waiting.push(Node { level: 0, index });
        }
        waiting
    }
}

const fn chunk_start(k: usize, c: usize) -> usize {
    tpc_ir::program::chunk_start(k as u64, c as u64) as usize
}

/// The order of adding the roots of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combination {
    /// Number of earlier sums to add to each root, last first.
    merges: [usize; CHUNKS],
    count: usize,
}

impl Combination {
    /// Creates the combination of adjacent parts that cover the whole K.
    ///
    /// # Errors
    /// Returns [`ProductError::Parts`] if the parts do not cover K, outnumber the chunks, or cut a chunk.
    pub fn new(parts: &[Part]) -> Result<Combination, ProductError> {
        let mut all = Waiting::default();
        let mut out = Combination {
            merges: [0; CHUNKS],
            count: 0,
        };
        let mut at = 0;
        for part in parts {
            let fits = part.start == at && part.global == parts[0].global;
            if !fits || part.plain || !part.ends_at_chunks() {
                return Err(ProductError::Parts);
            }
            at = part.end;
            let roots = part.nodes();
            for &node in &roots.nodes[..roots.count] {
                out.merges[out.count] = all.push(node);
                out.count += 1;
            }
        }
        if parts.is_empty() || at != parts[0].global {
            return Err(ProductError::Parts);
        }
        Ok(out)
    }

    /// Returns the number of roots of all parts.
    pub const fn roots(&self) -> usize {
        self.count
    }

    /// Returns the whole sum from all roots in order. Missing roots count as zero.
    pub fn sum(&self, root: impl Fn(usize) -> f32) -> f32 {
        let mut stack = [0.0; CHUNKS];
        let mut depth = 0;
        for (i, &merges) in self.merges[..self.count].iter().enumerate() {
            let mut sum = root(i);
            for _ in 0..merges {
                depth -= 1;
                sum += stack[depth];
            }
            stack[depth] = sum;
            depth += 1;
        }
        stack[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(leaves: [f32; CHUNKS], cuts: &[usize]) -> (f32, f32) {
        let k = CHUNKS * BLOCK;
        let of = |part: &Part| {
            let mut stack: Vec<f32> = Vec::new();
            for s in part.plan().segments() {
                let mut sum: f32 = (s.start..s.end)
                    .map(|b| leaves[part.start / BLOCK + b])
                    .sum();
                for _ in 0..s.merges {
                    sum += stack.pop().expect("a sum to merge");
                }
                stack.push(sum);
            }
            stack
        };
        let whole = of(&Part::whole(k));
        assert_eq!(whole.len(), 1);
        let parts: Vec<Part> = cuts
            .windows(2)
            .map(|w| Part::new(k, w[0] * BLOCK..w[1] * BLOCK).expect("a part"))
            .collect();
        let roots: Vec<f32> = parts.iter().flat_map(&of).collect();
        let combination = Combination::new(&parts).expect("parts of the whole");
        assert_eq!(combination.roots(), roots.len());
        (whole[0], combination.sum(|i| roots[i]))
    }

    #[test]
    fn any_parts_at_chunks_give_the_bits_of_the_whole() {
        let leaves = [1.0, 1e-8, 3e7, -2.5, 1e-3, 7.0, -3e7, 0.1];
        let tree = ((leaves[0] + leaves[1]) + (leaves[2] + leaves[3]))
            + ((leaves[4] + leaves[5]) + (leaves[6] + leaves[7]));
        for mask in 0..1 << (CHUNKS - 1) {
            let mut cuts = vec![0];
            cuts.extend((1..CHUNKS).filter(|c| mask >> (c - 1) & 1 == 1));
            cuts.push(CHUNKS);
            let (whole, parts) = sums(leaves, &cuts);
            assert_eq!(whole.to_bits(), f32::to_bits(tree));
            assert_eq!(parts.to_bits(), whole.to_bits(), "{cuts:?}");
        }
    }

    #[test]
    fn k_of_fewer_blocks_than_chunks_has_empty_chunks() {
        for k in [1, 31, 32, 33, 64, 100, 224] {
            let whole = Part::whole(k);
            let plan = whole.plan();
            assert_eq!(plan.roots, 1);
            let end = plan.segments().iter().map(|s| s.end).max();
            assert_eq!(end, Some(whole.blocks()));
            for at in (32..k).step_by(32) {
                let parts = [Part::new(k, 0..at), Part::new(k, at..k)];
                let [Ok(a), Ok(b)] = parts else {
                    panic!("parts of {k} at {at}");
                };
                let roots = Combination::new(&[a, b]).expect("a combination").roots();
                assert_eq!(roots, a.roots() + b.roots(), "{k} at {at}");
            }
        }
    }

    #[test]
    fn parts_that_cut_a_chunk_say_so() {
        let part = Part::new(2048, 0..704).expect("a part");
        assert!(!part.ends_at_chunks());
        assert_eq!(part.roots(), 1);
        assert_eq!(Combination::new(&[part]), Err(ProductError::Parts));
        assert!(Part::new(2048, 0..512).expect("a part").ends_at_chunks());
        let three = Part::new(2048, 0..768).expect("a part");
        assert_eq!((three.roots(), three.plain().roots()), (2, 1));
    }

    #[test]
    fn parts_outside_or_inside_blocks_are_refused() {
        for (start, end) in [(0, 0), (64, 32), (0, 4096), (16, 64), (0, 40)] {
            let part = Part::new(100, start..end);
            assert!(
                matches!(part, Err(ProductError::Part { .. })),
                "{start} to {end}"
            );
        }
        assert!(Part::new(100, 96..100).is_ok());
    }
}
