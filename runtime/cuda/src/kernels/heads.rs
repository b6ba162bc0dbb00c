//! Fused Q/K norm, RoPE and KV-cache write.

use tpc_ir::DType;
use tpc_ir::op::{Norm, NormKind, Rope, Scale, SetRows};

use super::cells::cell_params;
use super::kernel::{
    Geometry, OPERANDS, Request, Selection, Tensor, float, grid_per_row, index, instance, kernel,
    real,
};
use super::params::Params;
use super::source::{Arguments, Family, tag};
use super::{norm, rope, writable};

pub(super) const FAMILY: Family = Family {
    name: "heads",
    text: concat!(
        include_str!("cells.cuh"),
        "\n#line 1 \"norm.cuh\"\n",
        include_str!("norm.cuh"),
        "\n#line 1 \"rope.cuh\"\n",
        include_str!("rope.cuh"),
        "\n#line 1 \"heads.cu\"\n",
        include_str!("heads.cu")
    ),
};

const WARPS: usize = 4;
/// Shared memory of a block's rows, in bytes.
const SHARED: usize = 48 << 10;

/// Queries, keys and values that one launch normalises, rotates and stores. Operands: positions and frequency factors
/// (if a part is rotated), then each part's operands. Each part has one result.
#[derive(Clone, Debug, PartialEq)]
pub struct Heads {
    /// The rotary embedding, and true if frequency factors exist; `None` without rotated parts.
    pub rope: Option<(Rope, bool)>,
    /// The parts.
    pub parts: Vec<Head>,
}

/// The ops on a part's rows, in the order of the fields. Operands: the tensor, the norm's weight, the cache indices.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// The norm, whose result is multiplied by its weight.
    pub norm: Option<Norm>,
    /// True for rotary position embedding.
    pub rope: bool,
    /// The rows' scale and bias.
    pub scale: Option<Scale>,
    /// The update of a cache by the rows, along axis 2.
    pub set_rows: Option<SetRows>,
}

impl Head {
    /// Returns the part's number of operands.
    pub const fn operands(&self) -> usize {
        1 + self.norm.is_some() as usize + self.set_rows.is_some() as usize
    }
}

fn part(
    head: &Head,
    operands: &[Tensor],
    y: &Tensor,
    shared: [&str; 2],
) -> Result<String, &'static str> {
    let (x, rest) = operands.split_first().ok_or(OPERANDS)?;
    real(x.dtype)?;
    let (w, rest) = match head.norm {
        Some(_) => {
            let (w, rest) = rest.split_first().ok_or(OPERANDS)?;
            real(w.dtype)?;
            (tag(w.dtype), rest)
        }
        None => ("F32", rest),
    };
    let i = match (&head.set_rows, rest) {
        (Some(SetRows { axis: 2, .. }), [i]) => {
            index(i.dtype)?;
            writable(y.dtype)?;
            tag(i.dtype)
        }
        (None, []) => {
            float(y.dtype)?;
            "I32"
        }
        _ => return Err(OPERANDS),
    };
    let flags = [head.norm.is_some(), head.rope, head.scale.is_some()];
    let [n, t, s] = flags.map(u32::from);
    let c = match &head.set_rows {
        None => 0,
        Some(SetRows { cells: None, .. }) => 1,
        Some(SetRows { cells: Some(_), .. }) => 2,
    };
    let [p, q] = shared;
    let (x, y) = (tag(x.dtype), tag(y.dtype));
    Ok(format!(
        "Head<{x}, {w}, {p}, {q}, {i}, {y}, {n}, {t}, {s}, {c}>"
    ))
}

pub(super) fn heads(op: &Heads, request: &Request<'_>) -> Selection {
    let (shared, mut rest) = match &op.rope {
        None => (0, request.operands),
        Some((_, factors)) => {
            let count = 1 + usize::from(*factors);
            let all = request.operands.split_at_checked(count).ok_or(OPERANDS)?;
            index(all.0[0].dtype)?;
            all.0[1..].iter().try_for_each(|t| float(t.dtype))?;
            (count, all.1)
        }
    };
    let of = |i: usize, otherwise: DType| match i < shared {
        true => tag(request.operands[i].dtype),
        false => tag(otherwise),
    };
    let types = [of(0, DType::I32), of(1, DType::F32)];
    if request.results.len() != op.parts.len() {
        return Err("wrong number of results");
    }
    let (mut parts, mut width, mut rows) = (Vec::new(), 0, 0_usize);
    let mut numbers = Params::new();
    for (head, y) in op.parts.iter().zip(request.results) {
        let own = rest.split_at_checked(head.operands()).ok_or(OPERANDS)?;
        rest = own.1;
        parts.push(part(head, own.0, y, types)?);
        let x = &own.0[0];
        width = width.max(x.max_dims[0]);
        rows = rows.saturating_add(x.rows());
        let (kind, eps) = head
            .norm
            .as_ref()
            .map_or((NormKind::Rms, 0.0), |n| (n.kind, n.eps));
        let (scale, bias) = head
            .scale
            .as_ref()
            .map_or((1.0, 0.0), |s| (s.scale, s.bias));
        let warps = grid_per_row(1, x.max_dims[0]).threads / 32;
        numbers = norm::norm_params(numbers, kind, eps, 0)
            .u32(warps)
            .f32(scale)
            .f32(bias);
        numbers = cell_params(numbers, head.set_rows.as_ref().and_then(|s| s.cells))?;
    }
    if !rest.is_empty() {
        return Err(OPERANDS);
    }
    let bytes = WARPS * width * 4;
    if bytes > SHARED {
        return Err("the rows are too long");
    }
    let mut params = Params::new().u32(width as u32).u32(0).append(numbers);
    if let Some((op, factors)) = &op.rope {
        params = rope::rope_params(params, op, *factors)?;
    }
    let template = instance(FAMILY, "heads", &[], Arguments::Faults).with(shared);
    let template = template.with(parts.join(", "));
    let geometry = Geometry {
        grid: [rows.div_ceil(WARPS).clamp(1, 1 << 24) as u32, 1, 1],
        threads: 32 * WARPS as u32,
        shared_bytes: bytes as u32,
    };
    kernel(template, params, geometry)
}
