use serde::Serialize;
use tpc_passes::reproducibility::{DifferenceCause, TWO_TERM_WEIGHTS, find_differing_sums};

use crate::pipeline::CompiledModel;

/// Comparison of a plan's logits with the logits of one device, bit by bit.
#[derive(Clone, Debug, Serialize)]
pub struct BitsReport {
    /// True if all sums over devices have the bits of one device's sums.
    pub same: bool,
    /// Sums that may differ, by reason.
    pub others: Vec<OtherBitsReport>,
}

/// Sums whose bits may differ for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct OtherBitsReport {
    /// `devices`, `shares`, `terms` or `late`.
    pub reason: &'static str,
    /// Number of sums.
    pub sums: usize,
    /// The value of the first sum.
    pub first: String,
    #[serde(skip)]
    words: &'static str,
}

impl BitsReport {
    pub(super) fn new(compiled: &CompiledModel) -> BitsReport {
        let others = find_differing_sums(&compiled.programs, TWO_TERM_WEIGHTS);
        let others = others.into_iter().map(|(order, of)| {
            let (reason, words) = match order {
                DifferenceCause::DeviceCount => ("devices", "the devices are not 2, 4 or 8"),
                DifferenceCause::UnequalShares => (
                    "shares",
                    "the shares are unequal, or do not end at eighths of the axis",
                ),
                DifferenceCause::TwoTerms => {
                    ("terms", "small products add two sums on each device")
                }
                DifferenceCause::DeferredSum => {
                    ("late", "other ops run before the sum over devices")
                }
            };
            OtherBitsReport {
                reason,
                sums: of.sums,
                first: compiled.programs.value(of.first).name.clone(),
                words,
            }
        });
        let others: Vec<OtherBitsReport> = others.collect();
        BitsReport {
            same: others.is_empty(),
            others,
        }
    }

    pub(super) fn line(&self) -> String {
        if self.same {
            return "bits: same as one device\n".to_owned();
        }
        let sums = |o: &OtherBitsReport| {
            let plural = if o.sums == 1 { "" } else { "s" };
            format!("{} sum{plural} from `{}` on: {}", o.sums, o.first, o.words)
        };
        let each: Vec<String> = self.others.iter().map(sums).collect();
        format!("bits: may differ from one device; {}\n", each.join("; "))
    }
}
