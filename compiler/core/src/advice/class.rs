use crate::placement::Placement;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) context: bool,
    /// True if the caches lose precision.
    pub(super) caches: bool,
    pub(super) sequences: bool,
}

impl Class {
    pub(super) fn all(placement: &Placement) -> Vec<Class> {
        let bit = |n: u32, i: u32| n & (1 << i) != 0;
        let mut out: Vec<Class> = (0..8)
            .map(|n| Class {
                context: bit(n, 1),
                caches: bit(n, 0),
                sequences: bit(n, 2),
            })
            .filter(|c| !c.sequences || placement.parallel > 1)
            .collect();
        out.sort_by_key(|c| c.count());
        out
    }

    fn count(self) -> usize {
        [self.context, self.caches, self.sequences]
            .into_iter()
            .filter(|&given| given)
            .count()
    }

    /// True if `other` loses all properties that this class loses.
    pub(super) fn is_within(self, other: Class) -> bool {
        (!self.context || other.context)
            && (!self.caches || other.caches)
            && (!self.sequences || other.sequences)
    }
}
