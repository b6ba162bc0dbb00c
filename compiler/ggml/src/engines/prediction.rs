use tpc_ir::Code;

use super::condition::SplitUse;
use super::geometry::Geometry;
use super::{Backend, Basis, Build, Outcome};
use crate::llama_cpp::limit_codes as codes;

/// A reason why a tensor split fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The code of the finding.
    pub code: &'static Code,
    /// The outcome of the run.
    pub outcome: Outcome,
    /// The cause.
    pub why: String,
    /// The engine's message, or the place in the source.
    pub says: Option<String>,
    /// The evidence.
    pub basis: Basis,
    /// True if only the back end of the evidence is affected.
    pub only_there: bool,
}

impl Prediction {
    /// Returns the outcome and the cause, as the predicate of the engine's name.
    pub fn does(&self) -> String {
        match self.outcome {
            Outcome::Refuses | Outcome::SplitsByLayers => self.why.clone(),
            ends => format!("{}: {}", ends.words(), self.why),
        }
    }

    /// Returns the finding's message: engine, outcome, cause and evidence.
    pub fn message(&self, build: &Build) -> String {
        format!(
            "not possible with {}: it {} ({}{})",
            build.name(),
            self.does(),
            self.basis,
            match (&self.basis, self.only_there) {
                (Basis::Measured { .. }, false) => "; all back ends share the code",
                _ => "",
            }
        )
    }
}

/// Returns two different back ends of the devices, if any. RPC servers and unknown back ends do not count.
fn two_backends(backends: &[Option<Backend>]) -> Option<(Backend, Backend)> {
    let mut known = backends.iter().flatten().filter(|b| **b != Backend::Rpc);
    let first = known.next()?;
    let other = known.find(|b| *b != first)?;
    Some((*first, *other))
}

impl Build {
    /// Returns the reasons why a tensor split of the model fails; empty if the result is right. The first reason ends
    /// the run.
    pub fn predict(&self, model: &Geometry, of: &SplitUse<'_>) -> Vec<Prediction> {
        let split = &self.tensor_split;
        let read = || Basis::Read {
            version: self.version.clone(),
        };
        if split.refused.contains(&model.arch) {
            return vec![Prediction {
                code: &codes::REFUSED_BY_NAME,
                outcome: Outcome::Refuses,
                why: format!("refuses -sm {} for {}", split.mode, model.arch),
                says: None,
                basis: read(),
                only_there: false,
            }];
        }
        let n = of.devices.count;
        if let Some(most) = split.max_devices.filter(|&most| n > most) {
            return vec![Prediction {
                code: &codes::MANY_DEVICES,
                outcome: Outcome::Refuses,
                why: format!("splits tensors among at most {most} devices, not {n}"),
                says: None,
                basis: read(),
                only_there: false,
            }];
        }
        if !self.splits(&model.arch) {
            return vec![Prediction {
                code: &codes::NOT_LISTED,
                outcome: Outcome::SplitsByLayers,
                why: format!(
                    "splits {} by layers instead of with -sm {}",
                    model.arch, split.mode
                ),
                says: None,
                basis: read(),
                only_there: false,
            }];
        }
        let mixed = split.one_backend.as_ref().and_then(|basis| {
            let (a, b) = two_backends(of.backends)?;
            Some(Prediction {
                code: &codes::MIXED_BACKENDS,
                outcome: Outcome::AbortsAtContext,
                why: format!(
                    "the devices have two back ends, {} and {}",
                    a.name(),
                    b.name()
                ),
                says: None,
                basis: basis.clone(),
                only_there: false,
            })
        });
        let applies = |archs: &[String]| archs.is_empty() || archs.contains(&model.arch);
        let failures = split.failures.iter().filter(|f| applies(&f.archs));
        let mut out: Vec<Prediction> = mixed.into_iter().collect();
        for f in failures {
            let Some(why) = f.when.holds(model, of) else {
                continue;
            };
            // Conditions with the same code have one cause.
            if out.iter().any(|p| *p.code == *f.when.code()) {
                continue;
            }
            out.push(Prediction {
                code: f.when.code(),
                outcome: f.does,
                why,
                says: f.says.clone(),
                basis: f.basis.clone(),
                only_there: f.only_there,
            });
        }
        out
    }

    /// True if the engine splits an architecture's tensors. Without a list, it splits all architectures.
    pub fn splits(&self, arch: &str) -> bool {
        let listed = self.tensor_split.listed.as_ref();
        listed.is_none_or(|list| list.iter().any(|a| a == arch))
    }
}
