//! What can become of a graph: the classes of what the engine refuses or gets wrong, each with its code.

use tpc_ir::CodeDoc;

/// A class of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
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

/// How bad a class is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It runs, with the right result.
    Ok,
    /// It runs, with another result.
    Wrong,
    /// The process aborts.
    Crash,
    /// It says that it cannot.
    Refused,
}

impl Outcome {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Wrong => "wrong",
            Outcome::Crash => "crash",
            Outcome::Refused => "refused",
        }
    }
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 20] = [
        Class::Architecture,
        Class::Devices,
        Class::NoFlash,
        Class::Unknown,
        Class::Whole,
        Class::States,
        Class::Product,
        Class::Elementwise,
        Class::Rows,
        Class::Concat,
        Class::Shape,
        Class::Sizes,
        Class::Blocks,
        Class::Write,
        Class::Attention,
        Class::Heads,
        Class::Recurrence,
        Class::Slopes,
        Class::MirroredKeys,
        Class::Order,
    ];

    /// What it comes to.
    pub const fn outcome(self) -> Outcome {
        match self {
            Class::Architecture | Class::Devices | Class::NoFlash => Outcome::Refused,
            Class::Slopes | Class::MirroredKeys | Class::Order => Outcome::Wrong,
            _ => Outcome::Crash,
        }
    }

    /// Its code.
    pub const fn code(self) -> &'static str {
        CODES[self as usize].code
    }
}

/// The note that an equivalent graph is accepted, or that none was found.
pub(super) const CURE: &str = "TPC0720";

/// The codes of the classes, in their order, and of the search.
pub const CODES: &[CodeDoc] = &[
    CodeDoc {
        code: "TPC0700",
        title: "ggml-meta: architecture refused by name",
        doc: "The engine has a list of architectures whose tensors it does not split, whatever their graph. Example: mamba2. \
              Cure: split by layers there, or use tpc.",
    },
    CodeDoc {
        code: "TPC0701",
        title: "ggml-meta: too many devices",
        doc: "The engine splits tensors over 16 devices at most. Cure: fewer devices.",
    },
    CodeDoc {
        code: "TPC0702",
        title: "ggml-meta: attention is not one op",
        doc: "The engine splits tensors with flash attention only; this graph has caches of keys and values, and no \
              FLASH_ATTN_EXT. Cure: build the graph with flash attention.",
    },
    CodeDoc {
        code: "TPC0703",
        title: "ggml-meta: op without a rule",
        doc: "The engine infers for each op how its result is held, and aborts at one that it has no rule for. Cure: write it \
              with ops of the table (see the book).",
    },
    CodeDoc {
        code: "TPC0704",
        title: "ggml-meta: op of whole tensors on a split one",
        doc: "The engine computes this op on every device, of whole sources; one of them is split. Example: SSM_SCAN over \
              split channels. Cure: keep what it reads whole, or write it with ops that the engine splits.",
    },
    CodeDoc {
        code: "TPC0705",
        title: "ggml-meta: indices or positions are split",
        doc: "Rows are taken by mirrored indices, rotations made by mirrored positions, experts chosen by mirrored ids. Cure: \
              compute them of mirrored values.",
    },
    CodeDoc {
        code: "TPC0706",
        title: "ggml-meta: factors of a product in other states",
        doc: "A matrix product takes a weight split by rows with mirrored activations, mirrored weights with split rows, \
              matching parts of what is contracted, or matching batches. Example: a whole weight on activations whose rows \
              are split. Cure: the equivalent graph, where one is shown.",
    },
    CodeDoc {
        code: "TPC0707",
        title: "ggml-meta: operands in different states",
        doc: "An elementwise op takes operands in one state, or a mirrored second one that has size 1 where the first is split. \
              Example: a norm's weight repeated to the heads before it is multiplied. Cure: the equivalent graph, where one is \
              shown.",
    },
    CodeDoc {
        code: "TPC0708",
        title: "ggml-meta: rows that must be whole are split",
        doc: "Norms, sorts and sums need their rows, axis 0, on one device. Example: a norm over all heads of the \
              queries. Cure: norms per head; otherwise the layer cannot be split by this engine.",
    },
    CodeDoc {
        code: "TPC0709",
        title: "ggml-meta: parts of a split axis put together",
        doc: "CONCAT and PAD do not work along the split axis. Example: gate and up put into one tensor. Cure: the equivalent \
              graph, where one is shown.",
    },
    CodeDoc {
        code: "TPC0710",
        title: "ggml-meta: shape mismatch",
        doc: "A reshape or view puts the split axis inside of a size with others, so that no axis of the result is split. \
              Example: [d, heads, tokens] reshaped to [d, heads · tokens] before a product per head. Cure: the equivalent \
              graph, where one is shown: the product takes four axes.",
    },
    CodeDoc {
        code: "TPC0711",
        title: "ggml-meta: parts do not fit",
        doc: "The devices' parts of two sources differ, or are no whole numbers in the result's sizes. Cure: numbers of heads and \
              devices that divide each other, or other proportions.",
    },
    CodeDoc {
        code: "TPC0712",
        title: "ggml-meta: a quantisation block is cut",
        doc: "The parts of axis 0 of a quantised tensor are no whole blocks. Example: a cache of q8_0 with heads of 16. Cure: \
              another type, or fewer devices.",
    },
    CodeDoc {
        code: "TPC0713",
        title: "ggml-meta: a write in other states",
        doc: "What is written to a cache must be split as the cache is, which is not by cells. Example: the projections of a \
              layer on the host, its cache on the devices. Cure: keep both at one place.",
    },
    CodeDoc {
        code: "TPC0714",
        title: "ggml-meta: operands of attention in other states",
        doc: "FLASH_ATTN_EXT takes queries by heads, keys and values both by heads or both mirrored, a mirrored mask and sinks by \
              heads. Cure: split projections and caches by heads alike.",
    },
    CodeDoc {
        code: "TPC0715",
        title: "ggml-meta: heads that do not belong together",
        doc: "A device's number of heads of queries is no multiple of its number of heads of keys. Example: a cache on the host \
              (-nkvo), which every device sees whole. Cure: leave the cache on the devices.",
    },
    CodeDoc {
        code: "TPC0716",
        title: "ggml-meta: operands of a recurrence in other states",
        doc: "Convolutions and delta rules take all their sources by the same channels or heads. Cure: split by layers there, or \
              use tpc.",
    },
    CodeDoc {
        code: "TPC0717",
        title: "ggml-meta: ALiBi slopes of local heads",
        doc: "Each device computes the slopes of ALiBi from the indices of its own heads, as if there were no others: the \
              result is silently wrong. Example: bloom. Cure: split by layers there, or use tpc.",
    },
    CodeDoc {
        code: "TPC0718",
        title: "ggml-meta: whole keys for split queries",
        doc: "Keys and values are mirrored, queries split, and there is more than one head of keys: each device's queries meet \
              the wrong keys, and the result is silently wrong. Example: grouped queries with the cache on the host (-nkvo). \
              Cure: leave the cache on the devices.",
    },
    CodeDoc {
        code: "TPC0719",
        title: "ggml-meta: local elements in another order",
        doc: "A view, a gate or a repetition takes parts of what each device holds as if they were parts of the whole: the result is \
              silently wrong. Example: halves of a fused projection that the engine does not know to be fused. Cure: separate \
              tensors.",
    },
    CodeDoc {
        code: CURE,
        title: "ggml-meta: equivalent graph",
        doc: "Whether equality saturation found an equivalent of a refused graph that the engine's rules take, and how the \
              search ended. The lines that change are shown. `none found` proves nothing where the search stopped at a limit. \
              Cure: build the graph so.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_codes_of_their_own() {
        for (i, c) in Class::ALL.iter().enumerate() {
            assert_eq!(*c as usize, i);
            assert!(c.code() < CURE);
        }
        assert!(CODES.is_sorted_by_key(|c| c.code));
        assert_eq!(CODES.len(), Class::ALL.len() + 1);
    }
}
