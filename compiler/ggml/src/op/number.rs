use super::table::OpKind;

impl OpKind {
    /// Returns the op with this number in ggml's messages and files. `first_param` selects the kind of `UNARY` or
    /// `GLU`.
    pub fn from_number(number: u32, first_param: i32) -> Option<OpKind> {
        let kinds = |first: OpKind, end: usize| {
            let own = OpKind::ALL.get(first as usize..end)?;
            own.get(usize::try_from(first_param).ok()?).copied()
        };
        let number = usize::try_from(number).ok()?;
        match OpKind::ALL.get(number)? {
            OpKind::Unary => kinds(OpKind::Abs, OpKind::Reglu as usize),
            OpKind::Glu => kinds(OpKind::Reglu, OpKind::ALL.len()),
            op if number < OpKind::Abs as usize => Some(*op),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_ggml() {
        let op = OpKind::from_number;
        assert_eq!(op(0, 0), Some(OpKind::None));
        assert_eq!(op(29, 0), Some(OpKind::MulMat));
        assert_eq!(op(100, 2), Some(OpKind::Swiglu));
        assert_eq!(op(91, 10), Some(OpKind::Silu));
        assert_eq!(op(91, 21), Some(OpKind::Trunc));
        assert_eq!(op(91, 22), None);
        assert_eq!(op(91, -1), None);
        assert_eq!(op(100, 7), None);
        assert_eq!(op(101, 0), None);
        assert_eq!(op(u32::MAX, 0), None);
    }
}
