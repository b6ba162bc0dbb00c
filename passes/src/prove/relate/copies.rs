use tpc_ir::{Dim, Interval};

use crate::prove::index_set::{NotExpressible, Pattern, common_period, common_unit, units};

/// The maximum number of indices per period if copies are compared.
const MAX_INDICES: u64 = 1 << 14;

/// The copies of one value along an axis, in a whole tensor and in a part of it.
///
/// Index `lo + unit · (copy + times · hi)` of the whole tensor's axis is index `lo + unit · hi` of the repeated
/// value's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::prove) struct Copies {
    pub(in crate::prove) unit: Dim,
    pub(in crate::prove) times: u64,
    /// The indices of the repeated value in the part.
    pub(in crate::prove) pattern: Option<Pattern>,
    pub(in crate::prove) held: u64,
}

impl Copies {
    /// True if `held` selects exactly these copies, in this order, of `whole` indices; the part has `len` indices.
    pub(super) fn are_selected(
        &self,
        held: Option<&Pattern>,
        whole: &Dim,
        len: &Dim,
    ) -> Result<bool, NotExpressible> {
        if *len != held.map_or_else(|| Ok(whole.clone()), |p| p.count(whole))? {
            return Ok(false);
        }
        let own = self.pattern.as_ref();
        let mut fine = self.unit.clone();
        for p in [held, own].into_iter().flatten() {
            fine = common_unit(&fine, &p.unit)?;
        }
        let times = Dim::constant(self.times);
        let mut once = self.unit.clone();
        if let Some(p) = own {
            once = common_period(&once, &p.period()?)?;
        }
        let mut period = once.checked_mul(&times).ok_or(NotExpressible)?;
        if let Some(p) = held {
            period = common_period(&period, &p.period()?)?;
        }
        once = period.checked_div(&times).ok_or(NotExpressible)?;
        let indices = |p: Option<&Pattern>, period: &Dim| -> Result<Vec<u64>, NotExpressible> {
            let len = units(period, &fine)?;
            let intervals = match p {
                Some(p) => p.refine(&fine, period)?,
                None => vec![Interval { start: 0, len }],
            };
            if len > MAX_INDICES {
                return Err(NotExpressible);
            }
            Ok(intervals
                .into_iter()
                .flat_map(|r| r.start..r.end())
                .collect())
        };
        let unit = units(&self.unit, &fine)?;
        let expected = indices(held, &period)?.into_iter();
        let expected = expected.map(|i| i % unit + unit * (i / (unit * self.times)));
        let own = indices(own, &once)?;
        let copied = own.chunk_by(|a, b| a / unit == b / unit);
        let copied = copied.flat_map(|c| (0..self.held).flat_map(move |_| c));
        Ok(expected.eq(copied.copied()))
    }
}
