//! The fit of the constants: a search along each of them, which needs no derivatives and gives the same on every machine.

use super::rows::Row;
use super::{Case, Phase};
use tpc_passes::machine::{Engine, EngineProfile};

/// A constant of llama.cpp's profile.
pub struct Constant {
    /// Its name.
    pub name: &'static str,
    /// Its place in the profile.
    pub of: fn(&mut EngineProfile) -> &mut f64,
    /// Its least and largest value.
    pub within: (f64, f64),
}

macro_rules! constants {
    ($($name:ident in $low:literal, $high:literal;)*) => {
        /// The constants that are fitted.
        pub const CONSTANTS: &[Constant] = &[$(Constant {
            name: stringify!($name),
            of: |p| &mut p.$name,
            within: ($low, $high),
        }),*];
    };
}

constants! {
    product_us in 0.5, 20.0;
    attention_us in 1.0, 60.0;
    light_us in 0.05, 5.0;
    token_us in 5.0, 300.0;
    matrix_factor in 1.0, 60.0;
    bandwidth_share in 0.5, 0.95;
    bytes_per_cycle in 2.0, 20.0;
    scattered_bytes_per_cycle in 1.0, 20.0;
    no_dot_share in 0.2, 1.0;
    matrix_share in 0.1, 2.0;
    attention_share in 0.02, 1.0;
    expert_share in 0.2, 1.0;
    unpack_cycles in 0.05, 4.0;
    ported_share in 0.3, 1.0;
    host_share in 0.2, 1.0;
    host_us in 5.0, 200.0;
    host_link_share in 0.1, 1.0;
    reduction_latencies in 0.2, 6.0;
    reduction_growth in 0.2, 1.0;
    link_share in 0.1, 1.0;
    handover_us in 5.0, 600.0;
    overlap in 0.1, 1.0;
}

/// The factors by which ik_llama.cpp differs from llama.cpp.
#[derive(Clone, Copy, Debug)]
pub struct Factors {
    /// Of fixed times.
    pub fixed: f64,
    /// Of the speed of products by matrices.
    pub matrix: f64,
    /// Of the latency of reductions.
    pub reduction: f64,
    /// Of the share of a link's bandwidth.
    pub link: f64,
}

/// Numbers that are fitted: the constants, and the factors.
const NUMBERS: usize = CONSTANTS.len() + 6;

/// The factor on the time to unpack quantised weights in engines from before 2025, as fitted. Only old rows need it: answers
/// are for engines of today.
const OLD_UNPACKING: f64 = 9.22;

/// The factor on the share of a link's bandwidth where reductions are made of copies between devices, as fitted. Only rows
/// from before llama.cpp had a kernel for them need it.
const COPIED_REDUCTIONS: f64 = 0.435;

/// Random changes of several numbers at once that are tried in every round.
const TRIES: usize = 400;

/// The profiles of both engines.
#[derive(Clone, Copy, Debug)]
pub struct Profiles {
    /// llama.cpp's.
    pub llama: EngineProfile,
    /// ik_llama.cpp's, relative to it.
    pub ik: Factors,
    /// The factor on the time to unpack quantised weights in engines from before 2025.
    pub old_unpacking: f64,
    /// The factor on the share of a link's bandwidth where reductions are made of copies between devices.
    pub copied_reductions: f64,
}

impl Profiles {
    /// Those that are checked in.
    pub fn checked_in() -> Profiles {
        let llama = *EngineProfile::of(Engine::LlamaCpp);
        let ik = EngineProfile::of(Engine::IkLlamaCpp);
        Profiles {
            llama,
            ik: Factors {
                fixed: ik.product_us / llama.product_us,
                matrix: ik.matrix_share / llama.matrix_share,
                reduction: ik.reduction_latencies / llama.reduction_latencies,
                link: ik.link_share / llama.link_share,
            },
            old_unpacking: OLD_UNPACKING,
            copied_reductions: COPIED_REDUCTIONS,
        }
    }

    /// The profile of an engine.
    pub fn of(&self, engine: Engine) -> EngineProfile {
        let mut p = self.llama;
        if engine == Engine::IkLlamaCpp {
            p.product_us *= self.ik.fixed;
            p.attention_us *= self.ik.fixed;
            p.light_us *= self.ik.fixed;
            p.matrix_share *= self.ik.matrix;
            p.attention_share *= self.ik.matrix;
            p.unpack_cycles /= self.ik.matrix;
            p.reduction_latencies *= self.ik.reduction;
            p.link_share *= self.ik.link;
        }
        p
    }

    /// The profile of a row's engine in its year.
    pub fn of_row(&self, row: &Row) -> EngineProfile {
        let mut p = self.of(row.engine);
        if row.old {
            p.unpack_cycles *= self.old_unpacking;
        }
        if row.copied {
            p.link_share *= self.copied_reductions;
        }
        p
    }

    fn value(&mut self, i: usize) -> (&mut f64, (f64, f64)) {
        match i.checked_sub(CONSTANTS.len()) {
            None => ((CONSTANTS[i].of)(&mut self.llama), CONSTANTS[i].within),
            Some(0) => (&mut self.ik.fixed, (0.3, 2.0)),
            Some(1) => (&mut self.ik.matrix, (0.5, 3.0)),
            Some(2) => (&mut self.ik.reduction, (0.2, 3.0)),
            Some(3) => (&mut self.ik.link, (0.5, 5.0)),
            Some(4) => (&mut self.old_unpacking, (0.5, 16.0)),
            Some(_) => (&mut self.copied_reductions, (0.1, 1.0)),
        }
    }

    /// The errors of the cases with these profiles.
    pub fn errors(&self, cases: &[&Case], phases: &[Phase]) -> Vec<f64> {
        let each = cases.iter().flat_map(|c| {
            let profile = self.of_row(&c.row);
            let of = |&phase| c.error(phase, &profile);
            phases.iter().filter_map(of).collect::<Vec<_>>()
        });
        each.collect()
    }

    /// What the fit makes small: the mean error, of which large ones count almost by their size and small ones by their
    /// square. Some published rows are wrong by factors.
    fn loss(&self, cases: &[&Case]) -> f64 {
        const SCALE: f64 = 0.3;
        let errors = self.errors(cases, &[Phase::Decode, Phase::Prompt]);
        let each = errors
            .iter()
            .map(|e| (1.0 + (e / SCALE).powi(2)).sqrt() - 1.0);
        each.sum::<f64>() / errors.len().max(1) as f64
    }

    /// The profiles fitted to the cases, from these on. Calls `tell` with the loss after every round.
    #[must_use]
    pub fn fitted(mut self, cases: &[&Case], tell: &mut dyn FnMut(f64)) -> Profiles {
        let mut best = self.loss(cases);
        let mut state = 12_u64;
        let mut random = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut step = 0.2_f64;
        while step > 0.004 {
            let before = best;
            for _ in 0..TRIES {
                let mut next = self;
                for i in 0..NUMBERS {
                    let (value, (low, high)) = next.value(i);
                    let moved = if random() < 0.3 {
                        2.0 * random() - 1.0
                    } else {
                        0.0
                    };
                    *value = (*value * (2.0 * step * moved).exp()).clamp(low, high);
                }
                let loss = next.loss(cases);
                if loss < best {
                    (self, best) = (next, loss);
                }
            }
            for i in 0..NUMBERS {
                for factor in [step.exp(), (-step).exp()] {
                    loop {
                        let mut next = self;
                        let (value, (low, high)) = next.value(i);
                        *value = (*value * factor).clamp(low, high);
                        let loss = next.loss(cases);
                        if loss >= best - 1e-7 {
                            break;
                        }
                        (self, best) = (next, loss);
                    }
                }
            }
            tell(best);
            if before - best < 1e-4 {
                step /= 2.0;
            }
        }
        self
    }
}
