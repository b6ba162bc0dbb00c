//! Layers that run several times.

/// The number of runs of the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopForm {
    /// Once.
    Once,
    /// `num_loops` times, by default once. The output norm is applied between the runs, unless `skip_loop_final_norm`
    /// is true.
    Counted,
    /// As two stacks of `hrm.layers_per_stack` layers, low and high, each with its own residual stream. The low stack
    /// runs `hrm.l_cycles` times, then the high one once; this repeats `hrm.h_cycles` times. A stack reads the sum of
    /// both streams, and its output passes the output norm. The high stream begins as the embedding, the low one as
    /// `hrm.z_l_init`. `block_count` counts every run of a layer.
    Stacks,
}
