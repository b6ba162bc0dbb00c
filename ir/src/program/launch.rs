//! Launches.

use crate::entity::Inst;
use crate::place::Place;

/// The work of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// The instructions that it covers, in program order: what they compute is its meaning. The first may be a collective: then every
    /// participant runs the launch, with what follows at its place, and none goes on before all have.
    Compute(Vec<Inst>),
    /// A copy: the place reads the memory of the operand's place. Or a collective: every participant runs the launch, none
    /// goes on before all have.
    Transfer(Inst),
    /// The new content of a state, which lies elsewhere, is written to the state's memory: the output of that number.
    Store(usize),
}

/// A kernel that runs once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchData {
    /// The kernel's name.
    pub kernel: String,
    /// The places whose queues it stands in: one, or the participants of a collective in their order.
    pub places: Vec<Place>,
    /// Its work.
    pub work: Work,
}

impl LaunchData {
    /// The instructions that it covers.
    pub fn covered_insts(&self) -> &[Inst] {
        match &self.work {
            Work::Compute(insts) => insts,
            Work::Transfer(inst) => std::slice::from_ref(inst),
            Work::Store(_) => &[],
        }
    }
}
