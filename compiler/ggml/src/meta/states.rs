use std::fmt;

/// The maximum number of segments of a split axis.
pub const MAX_SEGMENTS: usize = 16;

/// The distribution of a tensor over the devices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SplitState {
    /// Every device holds the whole tensor.
    Mirrored,
    /// Every device holds one summand. A read reduces the sum first.
    Partial,
    /// Every device holds a part of one axis.
    Split(Split),
}

/// The devices' parts of an axis.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Split {
    /// The axis, 0 to 3.
    pub axis: usize,
    /// The segments in order. Each device holds a part of each segment.
    pub segments: Vec<Segment>,
}

/// A range of an axis that is divided among the devices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment {
    /// The length of each device's part.
    pub sizes: Vec<u64>,
    /// The number of consecutive repetitions.
    pub repeat: u64,
}

impl Segment {
    /// Returns the total length.
    pub fn len(&self) -> u64 {
        self.sizes.iter().sum::<u64>() * self.repeat
    }

    /// True if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Split {
    /// Returns a split with one segment.
    pub fn one(axis: usize, sizes: Vec<u64>) -> Split {
        let repeat = 1;
        Split {
            axis,
            segments: vec![Segment { sizes, repeat }],
        }
    }

    /// Returns the same parts along another axis.
    #[must_use]
    pub fn along(&self, axis: usize) -> Split {
        Split {
            axis,
            ..self.clone()
        }
    }

    /// Returns the length of the axis.
    pub fn len(&self) -> u64 {
        self.segments.iter().map(Segment::len).sum()
    }

    /// True if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the total length on each device.
    pub fn per_device(&self) -> Vec<u64> {
        let devices = self.segments.first().map_or(0, |s| s.sizes.len());
        (0..devices)
            .map(|d| self.segments.iter().map(|s| s.sizes[d] * s.repeat).sum())
            .collect()
    }

    /// Returns the split with every length multiplied by `to / from`; `None` if a length is not an integer.
    pub fn scaled(&self, to: u64, from: u64) -> Option<Split> {
        let scale = |&n: &u64| {
            let n = n.checked_mul(to)?;
            n.is_multiple_of(from).then(|| n / from)
        };
        let segment = |s: &Segment| {
            let sizes: Option<Vec<u64>> = s.sizes.iter().map(scale).collect();
            Some(Segment {
                sizes: sizes?,
                repeat: s.repeat,
            })
        };
        let segments: Option<Vec<Segment>> = self.segments.iter().map(segment).collect();
        Some(Split {
            axis: self.axis,
            segments: segments?,
        })
    }

    /// Returns a split with one segment of length `len` along `axis`, in the same proportions; `None` if a part is
    /// not an integer.
    pub fn shared(&self, axis: usize, len: u64) -> Option<Split> {
        let whole = self.len().max(1);
        Split::one(axis, self.per_device())
            .scaled(len, whole)
            .filter(|s| s.len() == len)
    }

    /// Returns the start of each segment, and the end of the last segment.
    pub fn bounds(&self) -> Vec<u64> {
        let mut at = 0;
        let mut out = vec![0];
        for s in &self.segments {
            for _ in 0..s.repeat {
                at += s.sizes.iter().sum::<u64>();
                out.push(at);
            }
        }
        out
    }
}

impl SplitState {
    /// Returns the state that a reader sees: partial sums are mirrored.
    #[must_use]
    pub fn seen(&self) -> &SplitState {
        match self {
            SplitState::Partial => &SplitState::Mirrored,
            other => other,
        }
    }

    /// Returns the split, if any.
    pub const fn split(&self) -> Option<&Split> {
        match self {
            SplitState::Split(s) => Some(s),
            SplitState::Mirrored | SplitState::Partial => None,
        }
    }

    /// Returns the split axis, if any.
    pub fn axis(&self) -> Option<usize> {
        self.split().map(|s| s.axis)
    }

    /// True if every device sees the whole tensor.
    pub const fn is_whole(&self) -> bool {
        matches!(self, SplitState::Mirrored | SplitState::Partial)
    }
}

impl From<Split> for SplitState {
    fn from(s: Split) -> SplitState {
        SplitState::Split(s)
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "axis {} [", self.axis)?;
        for (i, s) in self.segments.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            let sizes: Vec<String> = s.sizes.iter().map(u64::to_string).collect();
            f.write_str(&sizes.join("|"))?;
            if s.repeat > 1 {
                write!(f, " ×{}", s.repeat)?;
            }
        }
        f.write_str("]")
    }
}

impl fmt::Display for SplitState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SplitState::Mirrored => f.write_str("mirrored"),
            SplitState::Partial => f.write_str("partial"),
            SplitState::Split(s) => s.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_scaled_or_refused() {
        let qkv = Split {
            axis: 0,
            segments: vec![
                Segment {
                    sizes: vec![256, 128],
                    repeat: 1,
                },
                Segment {
                    sizes: vec![128, 64],
                    repeat: 2,
                },
            ],
        };
        assert_eq!(qkv.to_string(), "axis 0 [256|128, 128|64 ×2]");
        assert_eq!((qkv.len(), qkv.per_device()), (768, vec![512, 256]));
        assert_eq!(qkv.bounds(), [0, 384, 576, 768]);
        let heads = qkv.scaled(1, 64).expect("whole heads");
        assert_eq!(heads.to_string(), "axis 0 [4|2, 2|1 ×2]");
        assert_eq!(qkv.scaled(1, 128), None);
        let shared = qkv.shared(1, 3).map(|s| s.to_string());
        assert_eq!(shared.as_deref(), Some("axis 1 [2|1]"));
    }
}
