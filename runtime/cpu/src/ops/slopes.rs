//! ALiBi's slopes.

use tpc_ir::op::HeadWindow;

/// ALiBi's slopes (Press et al. 2021). Like ggml, they support head counts that are not powers of two.
#[derive(Debug)]
pub(super) struct Slopes {
    max_bias: f64,
    /// The window's heads and the model's head count; `None` for all query heads.
    heads: Option<(Box<[u64]>, u64)>,
}

impl Slopes {
    pub(super) fn of(max_bias: f32, heads: Option<&HeadWindow>) -> Result<Slopes, &'static str> {
        let heads = match heads {
            None => None,
            Some(window) => {
                let inside = |r: &tpc_ir::Interval| {
                    r.start
                        .checked_add(r.len)
                        .is_some_and(|end| end <= window.total)
                };
                if !window.heads.iter().all(inside) {
                    return Err("the heads exceed the model's number of heads");
                }
                let heads = window.heads.iter().flat_map(|r| r.start..r.end());
                Some((heads.collect(), window.total))
            }
        };
        Ok(Slopes {
            max_bias: f64::from(max_bias),
            heads,
        })
    }

    pub(super) fn fit(&self, local: usize) -> bool {
        let named = self.heads.as_ref();
        named.is_none_or(|(named, _)| named.len() == local)
    }

    pub(super) fn slope(&self, head: usize, local: usize) -> f32 {
        if self.max_bias <= 0.0 {
            return 1.0;
        }
        let (head, total) = match &self.heads {
            Some((heads, total)) => (heads[head], *total),
            None => (head as u64, local as u64),
        };
        let power = 1_u64 << total.max(1).ilog2();
        let step = self.max_bias / power as f64;
        let exponent = if head < power {
            -step * (head + 1) as f64
        } else {
            -step / 2.0 * (2 * (head - power) + 1) as f64
        };
        libm::exp2(exponent) as f32
    }
}
