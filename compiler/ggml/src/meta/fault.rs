//! Faults: graphs that ggml refuses or computes wrongly. Each kind of fault has its code.

use super::codes;
use tpc_ir::Code;

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// An architecture that ggml refuses by name.
    Architecture,
    /// More devices than ggml splits over.
    Devices,
    /// Cached attention that is not one op.
    NoFlash,
    /// An op without a rule.
    Unknown,
    /// A split source of an op that takes whole sources only.
    Whole,
    /// Split indices, positions or ids, which must be mirrored.
    States,
    /// Factors of a matrix product in states that do not fit.
    Product,
    /// Operands of an elementwise op in different states.
    Elementwise,
    /// Split rows of an op that needs them whole.
    Rows,
    /// A concatenation or padding along the split axis.
    Concat,
    /// A reshape or view that does not keep the split axis.
    Shape,
    /// Parts that differ between sources, or that are not integers in the result's sizes.
    Sizes,
    /// A part that ends inside of a quantisation block.
    Blocks,
    /// Rows in another state than the cache that they are written to.
    Write,
    /// Operands of attention in states that do not fit.
    Attention,
    /// Query heads of a device that are not a multiple of its key heads.
    Heads,
    /// Operands of a recurrence in states that do not fit.
    Recurrence,
    /// ALiBi slopes that count the heads of each device from 0.
    Slopes,
    /// Mirrored keys and values for split queries.
    MirroredKeys,
    /// Elements on a device in another order than in the whole tensor.
    Order,
}

/// The consequence of the faults of a graph, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The graph runs, with the right result.
    Ok,
    /// The graph runs, with a wrong result.
    Wrong,
    /// The process aborts.
    Crash,
    /// ggml refuses the graph with a message.
    Refused,
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

    /// Returns the consequence.
    pub const fn verdict(self) -> Verdict {
        match self {
            FaultKind::Architecture | FaultKind::Devices | FaultKind::NoFlash => Verdict::Refused,
            FaultKind::Slopes | FaultKind::MirroredKeys | FaultKind::Order => Verdict::Wrong,
            FaultKind::Unknown
            | FaultKind::Whole
            | FaultKind::States
            | FaultKind::Product
            | FaultKind::Elementwise
            | FaultKind::Rows
            | FaultKind::Concat
            | FaultKind::Shape
            | FaultKind::Sizes
            | FaultKind::Blocks
            | FaultKind::Write
            | FaultKind::Attention
            | FaultKind::Heads
            | FaultKind::Recurrence => Verdict::Crash,
        }
    }

    /// Returns the code.
    pub fn code(self) -> &'static Code {
        match self {
            FaultKind::Architecture => &codes::ARCHITECTURE,
            FaultKind::Devices => &codes::DEVICES,
            FaultKind::NoFlash => &codes::NO_FLASH,
            FaultKind::Unknown => &codes::UNKNOWN,
            FaultKind::Whole => &codes::WHOLE,
            FaultKind::States => &codes::STATES,
            FaultKind::Product => &codes::PRODUCT,
            FaultKind::Elementwise => &codes::ELEMENTWISE,
            FaultKind::Rows => &codes::ROWS,
            FaultKind::Concat => &codes::CONCAT,
            FaultKind::Shape => &codes::SHAPE,
            FaultKind::Sizes => &codes::SIZES,
            FaultKind::Blocks => &codes::BLOCKS,
            FaultKind::Write => &codes::WRITE,
            FaultKind::Attention => &codes::ATTENTION,
            FaultKind::Heads => &codes::HEADS,
            FaultKind::Recurrence => &codes::RECURRENCE,
            FaultKind::Slopes => &codes::SLOPES,
            FaultKind::MirroredKeys => &codes::MIRRORED_KEYS,
            FaultKind::Order => &codes::ORDER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_codes_in_their_order() {
        let codes = FaultKind::ALL.map(FaultKind::code);
        assert!(codes.is_sorted());
        assert_eq!(codes, codes::CODES[..codes.len()]);
        assert_eq!(codes.len() + 1, codes::CODES.len());
    }
}
