use crate::entity::Inst;
use crate::place::Place;

/// The work of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// The computed instructions, in program order. If the first is a collective, every participant runs the launch
    /// with the instructions at its place, and waits for all participants.
    Compute(Vec<Inst>),
    /// A copy, reading the memory of the operand's place, or a collective, which waits for all participants.
    Transfer(Inst),
    /// A copy of a state's new content into the state's memory. The number selects the output.
    Store(usize),
}

/// A kernel that runs once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchData {
    /// The kernel's name.
    pub kernel: String,
    /// The places whose queues contain the launch: one, or the participants of a collective in order.
    pub places: Vec<Place>,
    /// The work.
    pub work: Work,
}

impl LaunchData {
    /// Returns the covered instructions.
    pub fn covered_insts(&self) -> &[Inst] {
        match &self.work {
            Work::Compute(insts) => insts,
            Work::Transfer(inst) => std::slice::from_ref(inst),
            Work::Store(_) => &[],
        }
    }
}
