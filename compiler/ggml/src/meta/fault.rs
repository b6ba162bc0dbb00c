use super::codes;
use tpc_ir::Code;

/// The kind of a fault. Each kind has a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// An architecture that ggml refuses.
    Architecture,
    /// Too many devices.
    Devices,
    /// Cached attention that is not a single op.
    NoFlash,
    /// An op without a rule.
    Unknown,
    /// A split source of an op that needs whole sources.
    Whole,
    /// Split indices, positions or ids.
    States,
    /// Incompatible states of the factors of a matrix product.
    Product,
    /// Different states of the operands of an elementwise op.
    Elementwise,
    /// Split rows of an op that needs whole rows.
    Rows,
    /// A concatenation or padding along the split axis.
    Concat,
    /// A reshape or view that loses the split axis.
    Shape,
    /// Parts that differ between sources, or are not integers in the result's sizes.
    Sizes,
    /// A part that ends inside a quantisation block.
    Blocks,
    /// Written rows whose state differs from the target cache's.
    Write,
    /// Incompatible states of attention operands.
    Attention,
    /// Query heads that are not a multiple of the key heads, on one device.
    Heads,
    /// Incompatible states of recurrence operands.
    Recurrence,
    /// ALiBi slopes that number the heads of each device from 0.
    Slopes,
    /// Mirrored keys and values for split queries.
    MirroredKeys,
    /// Elements of a device that are not in the whole tensor's order.
    Order,
}

/// The consequence of faults, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The result is right.
    Ok,
    /// The result is wrong.
    Wrong,
    /// The process aborts.
    Crash,
    /// ggml refuses the graph with a message.
    Refused,
}

impl FaultKind {
    /// All kinds.
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

    /// Returns the consequence of the fault.
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
