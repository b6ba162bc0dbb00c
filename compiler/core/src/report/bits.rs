use schemars::JsonSchema;
use serde::Serialize;
use tpc_ir::Graph;
use tpc_ir::program::Company;
use tpc_passes::bits::{Difference, DifferenceCause, find_differences};

use crate::pipeline::CompiledModel;

/// Comparison of a plan's logits with the logits of one device, bit by bit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BitsReport {
    /// True if all sums over devices have the bits of one device's sums.
    pub same: bool,
    /// Sums that may differ, by reason.
    pub others: Vec<OtherBitsReport>,
    /// The widest batch in which a token has the bits of a batch of one token; `None` for any batch.
    pub widths: Option<u64>,
    /// True if other sequences, each with its own part of the caches, do not change a token's bits.
    pub neighbours: bool,
    /// The speed with `--deterministic on`, as a share of this plan's speed. `None` if it is unknown, or if all sums keep
    /// their bits.
    pub kept_at: Option<f64>,
}

/// Sums whose bits may differ for one reason.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OtherBitsReport {
    /// The reason.
    #[schemars(extend("enum" = ["devices", "shares", "terms", "late", "norms", "products", "cells"]))]
    pub reason: &'static str,
    /// Number of sums.
    pub sums: usize,
    /// The value of the first sum.
    pub first: String,
    #[serde(skip)]
    words: &'static str,
}

/// Returns the reason's word and explanation.
pub fn explain_difference(cause: DifferenceCause) -> (&'static str, &'static str) {
    match cause {
        DifferenceCause::DeviceCount => ("devices", "the devices are not 2, 4 or 8"),
        DifferenceCause::UnequalShares => (
            "shares",
            "the shares are unequal, or do not end at eighths of the axis",
        ),
        DifferenceCause::TwoTerms => ("terms", "small products add two sums on each device"),
        DifferenceCause::DeferredSum => ("late", "other ops run before the sum over devices"),
        DifferenceCause::SplitNorm => ("norms", "devices add statistics of parts of a norm"),
        DifferenceCause::ProductOrder => (
            "products",
            "devices add a part of a product in another order than one device",
        ),
        DifferenceCause::SplitCells => (
            "cells",
            "devices attend to parts of the cells, and their results are joined",
        ),
    }
}

impl BitsReport {
    /// Creates the report of a plan.
    pub fn new(compiled: &CompiledModel) -> BitsReport {
        BitsReport::of_programs(&compiled.programs, compiled.request.storage.company())
    }

    /// Creates the report of programs on an executor with these properties.
    pub fn of_programs(programs: &Graph, company: Company) -> BitsReport {
        let mut others: Vec<(DifferenceCause, OtherBitsReport)> = Vec::new();
        for Difference { cause, value, .. } in find_differences(programs, company) {
            if let Some((_, of)) = others.iter_mut().find(|(c, _)| *c == cause) {
                of.sums += 1;
                continue;
            }
            let (reason, words) = explain_difference(cause);
            let first = programs.value(value).name.clone();
            let sums = 1;
            others.push((
                cause,
                OtherBitsReport {
                    reason,
                    sums,
                    first,
                    words,
                },
            ));
        }
        others.sort_by_key(|(cause, _)| *cause);
        BitsReport {
            same: others.is_empty(),
            others: others.into_iter().map(|(_, of)| of).collect(),
            widths: (company.widths < u64::MAX).then_some(company.widths),
            neighbours: company.neighbours,
            kept_at: None,
        }
    }

    /// Returns the number of sums that may differ.
    pub fn sums(&self) -> usize {
        self.others.iter().map(|o| o.sums).sum()
    }

    /// Returns the promise in one line, without its label.
    pub fn brief(&self) -> String {
        if self.same {
            return match self.widths {
                None => "same for any devices, widths and drafts".to_owned(),
                Some(1) => "same for any devices".to_owned(),
                Some(n) => format!("same for any devices and for up to {n} tokens per batch"),
            };
        }
        let reasons: Vec<&str> = self.others.iter().map(|o| o.reason).collect();
        let differ = format!(
            "differ from one device's in {} sum{} ({})",
            self.sums(),
            if self.sums() == 1 { "" } else { "s" },
            reasons.join(", ")
        );
        match self.kept_at {
            Some(share) => format!(
                "{differ}; --deterministic on keeps them at {:.0} % of the speed",
                share * 100.0
            ),
            None => differ,
        }
    }

    /// Returns the sums that may differ with their reasons; empty if all are the same.
    pub(super) fn details(&self) -> String {
        if self.same {
            return String::new();
        }
        let sums = |o: &OtherBitsReport| {
            let plural = if o.sums == 1 { "" } else { "s" };
            format!("{} sum{plural} from `{}` on: {}", o.sums, o.first, o.words)
        };
        let each: Vec<String> = self.others.iter().map(sums).collect();
        format!("bits: may differ from one device; {}\n", each.join("; "))
    }
}
