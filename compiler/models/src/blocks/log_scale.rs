//! Factors on queries that grow with the logarithm of the position, with numbers per head.

use tpc_ir::op::{InputKind, Repeat, Temperature, TemperatureCurve};
use tpc_ir::{DType, Dim, TensorType, Value};

use super::builder::Builder;
use super::context::LayerContext;
use crate::error::ArchError;
use crate::size::Size;
use crate::source::TensorRole;

/// `1 + ln(position + 1)`
const POSITIONS: Temperature = Temperature {
    scale: 1.0,
    length: 1,
    offset: 0.0,
    curve: TemperatureCurve::Logarithm,
};

/// Multiplies the heads `q: [d, heads, n_tokens]` by the factors of `tensor`, if the description has them.
pub(super) fn apply(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    tensor: &str,
    heads: u64,
    q: Value,
) -> Result<Value, ArchError> {
    let presence = cx.model.arch.attention.log_scale;
    let per_head = [Size::new(heads, "the number of heads")];
    let [slope, start] = [("weight", TensorRole::Scale), ("bias", TensorRole::Bias)]
        .map(|(part, role)| (b.tensor_name(tensor, part), role))
        .map(|(name, role)| b.optional(&name, &per_head, role, presence));
    let (Some(slope), Some(start)) = (slope?, start?) else {
        return Ok(q);
    };
    let row = |b: &mut Builder<'_>, x| b.reshape(x, [Dim::ONE, heads.into()], tensor);
    let (slope, start) = (row(b, slope)?, row(b, start)?);
    let logs = b.input(InputKind::Temperature(POSITIONS));
    let logs = b.line(logs, 1.0, -1.0, "log_positions")?;
    let dims = TensorType::new(DType::F32, [Dim::ONE, heads.into(), b.n_tokens()]).dims;
    let logs = b.push(Repeat { dims }, vec![logs], tensor)?;
    let factor = b.mul(logs, slope, tensor)?;
    let factor = b.add(factor, start, tensor)?;
    b.mul(q, factor, "Qcur_scaled")
}
