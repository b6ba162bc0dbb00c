use crate::size::Size;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FfnWidth {
    pub(crate) n: Size,
    /// Width of gate and up in one matrix.
    pub(crate) gate_up: Size,
}
