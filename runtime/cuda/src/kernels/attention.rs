//! Selects the kernel of `soft_max`, and parses the operands of attention.

use tpc_ir::DType;
use tpc_ir::op::{FlashAttn, HeadWindow, SoftMax};

use super::kernel::{
    OPERANDS, Request, Selection, Tensor, float, grid_per_row, instance, kernel, real,
};
use super::params::Params;
use super::source::{Arguments, Family, Instance};

pub(super) const FAMILY: Family = Family {
    name: "attention",
    text: concat!(
        include_str!("terms.cuh"),
        "\n#line 1 \"cache.cuh\"\n",
        include_str!("cache.cuh"),
        "\n#line 1 \"cache_tiles.cuh\"\n",
        include_str!("cache_tiles.cuh"),
        "\n#line 1 \"attention.cu\"\n",
        include_str!("attention.cu"),
        "\n#line 1 \"flash_decode.cu\"\n",
        include_str!("flash_decode.cu")
    ),
};

/// Returns the ALiBi slope of each local head. Head counts that are not a power of two follow ggml.
fn slopes(
    max_bias: f32,
    heads: Option<&HeadWindow>,
    local: usize,
) -> Result<Vec<f32>, &'static str> {
    let (heads, total): (Vec<u64>, u64) = match heads {
        Some(window) => {
            let ends = window.heads.iter();
            let mut ends = ends.map(|r| r.start.checked_add(r.len));
            let named = window
                .heads
                .iter()
                .try_fold(0_u64, |n, r| n.checked_add(r.len));
            if !ends.all(|end| end.is_some_and(|end| end <= window.total))
                || named != Some(local as u64)
            {
                return Err("the window of heads does not match the number of heads");
            }
            let heads = window.heads.iter().flat_map(|r| r.start..r.end());
            (heads.collect(), window.total)
        }
        None => ((0..local as u64).collect(), local as u64),
    };
    if max_bias <= 0.0 {
        return Ok(vec![1.0; local]);
    }
    let power = 1_u64 << total.max(1).ilog2();
    let base = |bias: f64| libm::exp2(-bias / power as f64);
    let bias = f64::from(max_bias);
    let slope = |h: u64| match h < power {
        true => libm::pow(base(bias), (h + 1) as f64),
        false => libm::pow(base(bias / 2.0), (2 * (h - power) + 1) as f64),
    };
    Ok(heads.into_iter().map(|h| slope(h) as f32).collect())
}

pub(super) struct Attention<'a> {
    pub(super) op: &'a FlashAttn,
    pub(super) q: Tensor,
    pub(super) k: Tensor,
    pub(super) v: Tensor,
    pub(super) mask: Tensor,
    pub(super) sinks: Option<Tensor>,
    pub(super) y: Tensor,
    pub(super) terms: bool,
    pub(super) multiprocessors: u32,
}

impl<'a> Attention<'a> {
    pub(super) fn new(
        op: &'a FlashAttn,
        request: &Request<'_>,
    ) -> Result<Attention<'a>, &'static str> {
        let (first, sinks) = match request.operands {
            [first @ .., sinks] if first.len() == 4 => (first, Some(*sinks)),
            first if first.len() == 4 => (first, None),
            _ => return Err(OPERANDS),
        };
        let (y, terms) = match request.results {
            [y] => (*y, false),
            [y, _] => (*y, true),
            _ => return Err("wrong number of results"),
        };
        if terms && op.lse {
            return Err("int8 terms cannot end with a log-sum-exp");
        }
        float(y.dtype)?;
        first.iter().try_for_each(|t| real(t.dtype))?;
        let [q, k, v, mask] = [first[0], first[1], first[2], first[3]];
        float(mask.dtype)?;
        sinks.map_or(Ok(()), |s| float(s.dtype))?;
        Ok(Attention {
            op,
            q,
            k,
            v,
            mask,
            sinks,
            y,
            terms,
            multiprocessors: request.multiprocessors,
        })
    }

    pub(super) fn instance(&self, family: Family, template: &str) -> Instance {
        let sinks = self.sinks.map_or(DType::F32, |s| s.dtype);
        let [q, k, v, mask, y] = [&self.q, &self.k, &self.v, &self.mask, &self.y].map(|t| t.dtype);
        let types = [q, k, v, mask, sinks, y];
        let extra = match (self.terms, self.op.lse) {
            (false, false) => 0,
            (true, _) => 1,
            (false, true) => 2,
        };
        instance(family, template, &types, Arguments::Params).with(extra)
    }

    /// Returns the parameters that all attention kernels have first: scale, soft cap, and 1 if attention sinks exist.
    pub(super) fn params(&self) -> Params {
        Params::new()
            .f32(self.op.scale)
            .f32(self.op.softcap)
            .u32(self.sinks.is_some().into())
    }

    pub(super) fn with_slopes(&self, params: Params) -> Result<Params, &'static str> {
        let slopes = slopes(self.op.max_bias, self.op.heads.as_ref(), self.q.max_dims[2])?;
        Ok(slopes.into_iter().fold(params, Params::f32))
    }
}

pub(super) fn soft_max(op: &SoftMax, request: &Request<'_>) -> Selection {
    let (x, further) = match request.operands {
        [x, further @ ..] if further.len() < 3 => (x, further),
        _ => return Err(OPERANDS),
    };
    let y = request.real_result()?;
    real(x.dtype)?;
    further.iter().try_for_each(|t| float(t.dtype))?;
    let of = |i: usize| further.get(i).map_or(DType::F32, |t| t.dtype);
    let types = [x.dtype, of(0), of(1), y.dtype];
    let template = instance(FAMILY, "soft_max", &types, Arguments::Params);
    let mut params = Params::new()
        .f32(op.scale)
        .u32((!further.is_empty()).into())
        .u32((further.len() > 1).into())
        .u32(0);
    for slope in slopes(op.max_bias, op.heads.as_ref(), x.max_dims[2])? {
        params = params.f32(slope);
    }
    kernel(template, params, grid_per_row(x.rows(), x.max_dims[0]))
}
