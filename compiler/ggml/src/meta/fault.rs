//! What can become of a graph: the kinds of what the engine refuses or gets wrong, each with its code.

use super::codes::CODES;
use tpc_ir::Code;

/// A kind of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// The architecture is on the engine's list of refused ones.
    Architecture,
    /// More devices than it has room for.
    Devices,
    /// It splits attention only as one op.
    NoFlash,
    /// An op that it has no rule for.
    Unknown,
    /// An op that it computes only of whole sources.
    Whole,
    /// States that an op does not take, of sources that must be mirrored.
    States,
    /// Factors of a matrix product.
    Product,
    /// Operands of an elementwise op.
    Elementwise,
    /// Rows that must be whole.
    Rows,
    /// Axes put together or padded.
    Concat,
    /// A split that other sizes or strides do not keep.
    Shape,
    /// Parts that do not fit each other.
    Sizes,
    /// Blocks of a quantised type cut.
    Blocks,
    /// Rows written to a cache.
    Write,
    /// Operands of attention.
    Attention,
    /// Heads of a device that do not belong together.
    Heads,
    /// Operands of a recurrence.
    Recurrence,
    /// ALiBi slopes of local heads.
    Slopes,
    /// Keys and values mirrored where queries are split.
    MirroredKeys,
    /// Local elements in another order than those of the whole.
    Order,
}

/// How bad a kind is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It runs, with the right result.
    Ok,
    /// It runs, with another result.
    Wrong,
    /// The process aborts.
    Crash,
    /// It says that it cannot.
    Refused,
}

impl Verdict {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Wrong => "wrong",
            Verdict::Crash => "crash",
            Verdict::Refused => "refused",
        }
    }
}

impl FaultKind {
    /// Every kind.
    pub const ALL: [FaultKind; 20] = [
        FaultKind::Architecture,
        FaultKind::Devices,
        FaultKind::NoFlash,
        FaultKind::Unknown,
        FaultKind::Whole,
        FaultKind::States,
        FaultKind::Product,
        FaultKind::Elementwise,
        FaultKind::Rows,
        FaultKind::Concat,
        FaultKind::Shape,
        FaultKind::Sizes,
        FaultKind::Blocks,
        FaultKind::Write,
        FaultKind::Attention,
        FaultKind::Heads,
        FaultKind::Recurrence,
        FaultKind::Slopes,
        FaultKind::MirroredKeys,
        FaultKind::Order,
    ];

    /// What it comes to.
    pub const fn verdict(self) -> Verdict {
        match self {
            FaultKind::Architecture | FaultKind::Devices | FaultKind::NoFlash => Verdict::Refused,
            FaultKind::Slopes | FaultKind::MirroredKeys | FaultKind::Order => Verdict::Wrong,
            _ => Verdict::Crash,
        }
    }

    /// Its code.
    pub fn code(self) -> &'static Code {
        CODES[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;

    #[test]
    fn classes_have_codes_of_their_own() {
        for (i, c) in FaultKind::ALL.iter().enumerate() {
            assert_eq!(*c as usize, i);
            assert!(c.code() < &codes::EQUIVALENT);
        }
        assert!(CODES.is_sorted());
        assert_eq!(CODES.len(), FaultKind::ALL.len() + 1);
    }
}
