/// Number of runs of the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopForm {
    /// One run.
    Once,
    /// `num_loops` runs, by default one. The output norm is applied between runs, unless `skip_loop_final_norm` is
    /// true.
    Counted,
    /// Two stacks of `hrm.layers_per_stack` layers, low and high, each with its own residual stream. The low stack runs
    /// `hrm.l_cycles` times, then the high stack once; this repeats `hrm.h_cycles` times. A stack reads the sum of both
    /// streams, and its output passes the output norm. The high stream begins as the embedding, the low stream as
    /// `hrm.z_l_init`. `block_count` counts every run of a layer.
    Stacks,
}
