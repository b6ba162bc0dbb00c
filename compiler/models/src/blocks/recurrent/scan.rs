//! The selective scan: a state per head that decays by a gated step, takes in the input and is read.

use tpc_ir::op::SsmScan;
use tpc_ir::{Dim, Value};

use super::state;
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::error::ArchError;

pub(super) struct ScanSizes {
    /// State elements per head element.
    pub(super) d_state: u64,
    pub(super) head_dim: u64,
    pub(super) heads: u64,
    /// Number of head groups; heads of a group share `B` and `C`.
    pub(super) groups: u64,
}

#[derive(Clone, Copy)]
pub(super) struct ScanInputs {
    /// Input, `[head_dim · heads, n_tokens]`.
    pub(super) x: Value,
    /// Steps, `[heads, n_tokens]`.
    pub(super) dt: Value,
    /// Decay rates, `[d_state or 1, heads]`.
    pub(super) decay: Value,
    /// `B`, `[d_state · groups, n_tokens]`.
    pub(super) taken: Value,
    /// `C`, `[d_state · groups, n_tokens]`.
    pub(super) read: Value,
}

/// Returns the scan's output and its input as heads, `[head_dim, heads, n_seq_tokens, n_seqs]` each.
pub(super) fn scan(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    sizes: &ScanSizes,
    inputs: ScanInputs,
) -> Result<[Value; 2], ArchError> {
    let [n_t, n_s] = state::tokens();
    let (dim, heads): (Dim, Dim) = (sizes.head_dim.into(), sizes.heads.into());
    let by_head = [dim.clone(), heads.clone(), n_t.clone(), n_s.clone()];
    let x = b.reshape(inputs.x, by_head, "ssm_x")?;
    let steps = [heads.clone(), n_t.clone(), n_s.clone()];
    let dt = b.reshape(inputs.dt, steps, "ssm_dt")?;
    let (size, groups): (Dim, Dim) = (sizes.d_state.into(), sizes.groups.into());
    let by_group = [size.clone(), groups, n_t, n_s.clone()];
    let taken = b.reshape(inputs.taken, by_group.clone(), "ssm_b")?;
    let read = b.reshape(inputs.read, by_group, "ssm_c")?;
    let elements = sizes.d_state * sizes.head_dim * sizes.heads;
    let (kept, before) = state::read(b, cx, "cache_s", elements)?;
    let before = b.reshape(before, [size, dim, heads, n_s], "ssm_states")?;
    let operands = vec![before, x, dt, inputs.decay, taken, read];
    let [y, after] = b.push_pair(SsmScan, operands, ["ssm_scan", "ssm_states_updated"])?;
    kept.write(b, after)?;
    Ok([y, x])
}

/// Returns the scan's output plus its input times `passed`, one number per head, `[head_dim, heads, n_tokens]`.
pub(super) fn passed_scan(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    sizes: &ScanSizes,
    inputs: ScanInputs,
    passed: Value,
) -> Result<Value, ArchError> {
    let [y, x] = scan(b, cx, sizes, inputs)?;
    let x = b.mul(x, passed, "ssm_x_passed")?;
    let y = b.add(y, x, "ssm_y_passed")?;
    let by_head = [sizes.head_dim.into(), sizes.heads.into(), b.n_tokens()];
    b.reshape(y, by_head, "ssm_y")
}
