use tpc_ir::DType;

use super::table::OpKind;

/// The numbers of ops and element types in the messages of a ggml release.
#[derive(Debug, PartialEq, Eq)]
pub struct Numbering {
    /// The release.
    pub ggml: &'static str,
    /// The ops of [`OpKind::ALL`] that the release lacks, in order.
    absent: &'static [OpKind],
    /// The number after the last element type.
    types: u32,
}

impl Numbering {
    /// ggml 0.25, of llama.cpp 0.5 and 0.6.
    pub const GGML_0_25: Numbering = Numbering {
        ggml: "0.25",
        absent: &[OpKind::TopKMask],
        types: 43,
    };

    /// ggml 0.28, of llama.cpp 0.8.
    pub const GGML_0_28: Numbering = Numbering {
        ggml: "0.28",
        absent: &[],
        types: 44,
    };

    /// Returns the op with this number. `first_param` selects the kind of `UNARY` or `GLU`.
    pub fn op(&self, number: u32, first_param: i32) -> Option<OpKind> {
        let kinds = |first: OpKind, end: usize| {
            let own = OpKind::ALL.get(first as usize..end)?;
            own.get(usize::try_from(first_param).ok()?).copied()
        };
        let shift = |at: usize, absent: &OpKind| at + usize::from(*absent as usize <= at);
        let number = usize::try_from(number).ok()?;
        let at = self.absent.iter().fold(number, shift);
        match OpKind::ALL.get(at)? {
            OpKind::Unary => kinds(OpKind::Abs, OpKind::Reglu as usize),
            OpKind::Glu => kinds(OpKind::Reglu, OpKind::ALL.len()),
            op if at < OpKind::Abs as usize => Some(*op),
            _ => None,
        }
    }

    /// Returns the op's number, and its first parameter if it is a kind of `UNARY` or `GLU`. `None` if the release
    /// lacks the op.
    pub fn number(&self, op: OpKind) -> Option<(u32, Option<i32>)> {
        let kind = |group: OpKind, first: OpKind| {
            let kind = i32::try_from(op as usize - first as usize).ok()?;
            Some((self.number(group)?.0, Some(kind)))
        };
        if self.absent.contains(&op) {
            return None;
        }
        if op >= OpKind::Reglu {
            return kind(OpKind::Glu, OpKind::Reglu);
        }
        if op >= OpKind::Abs {
            return kind(OpKind::Unary, OpKind::Abs);
        }
        let before = self.absent.iter().filter(|absent| **absent < op).count();
        Some((u32::try_from(op as usize - before).ok()?, None))
    }

    /// Returns the element type with this number; `None` if the release lacks it.
    pub fn dtype(&self, number: u32) -> Option<DType> {
        DType::from_gguf_id(number).filter(|_| number < self.types)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_ggml() {
        let op = |number, kind| Numbering::GGML_0_25.op(number, kind);
        assert_eq!(op(0, 0), Some(OpKind::None));
        assert_eq!(op(29, 0), Some(OpKind::MulMat));
        assert_eq!(op(90, 0), Some(OpKind::Dsv4HcPost));
        assert_eq!(op(100, 2), Some(OpKind::Swiglu));
        assert_eq!(op(91, 10), Some(OpKind::Silu));
        assert_eq!(op(91, 21), Some(OpKind::Trunc));
        assert_eq!(op(91, 22), None);
        assert_eq!(op(91, -1), None);
        assert_eq!(op(100, 7), None);
        assert_eq!(op(101, 0), None);
        assert_eq!(op(u32::MAX, 0), None);
    }

    #[test]
    fn an_inserted_op_moves_the_numbers_after_it() {
        let op = |number, kind| Numbering::GGML_0_28.op(number, kind);
        assert_eq!(op(29, 0), Some(OpKind::MulMat));
        assert_eq!(op(90, 0), Some(OpKind::Dsv4HcPost));
        assert_eq!(op(91, 10), Some(OpKind::TopKMask));
        assert_eq!(op(92, 10), Some(OpKind::Silu));
        assert_eq!(op(96, 0), Some(OpKind::Custom));
        assert_eq!(op(101, 2), Some(OpKind::Swiglu));
        assert_eq!(op(102, 0), None);
    }

    #[test]
    fn every_op_has_the_number_that_it_is_read_from() {
        for numbering in [Numbering::GGML_0_25, Numbering::GGML_0_28] {
            for &op in OpKind::ALL {
                let Some((number, kind)) = numbering.number(op) else {
                    assert!(numbering.absent.contains(&op), "{op}");
                    continue;
                };
                // UNARY and GLU are groups of ops.
                let is_group = matches!(op, OpKind::Unary | OpKind::Glu);
                let read = numbering.op(number, kind.unwrap_or(0));
                assert!(is_group || read == Some(op), "{op}: {read:?}");
            }
        }
    }

    #[test]
    fn a_release_has_its_own_element_types() {
        let old = Numbering::GGML_0_25;
        assert_eq!(old.dtype(42), Some(DType::Q2_0));
        assert_eq!(old.dtype(43), None);
        assert_eq!(Numbering::GGML_0_28.dtype(43), Some(DType::F8E4M3));
        // Numbers of ik_llama.cpp are not ggml's.
        assert_eq!(Numbering::GGML_0_28.dtype(137), None);
    }
}
