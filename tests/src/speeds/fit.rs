//! Fits the constants by a search along each constant in turn. Uses no derivatives; gives the same result on every
//! machine.

use std::collections::{BTreeMap, BTreeSet};

use super::rows::Row;
use super::{Case, Phase};
use tpc_core::placement::SplitMode;
use tpc_passes::machine::{CardClass, ClassFactor, Engine, EngineProfile};

/// A constant of llama.cpp's profile.
pub struct Constant {
    /// The name.
    pub name: &'static str,
    /// The field of the profile.
    pub of: fn(&mut EngineProfile) -> &mut f64,
    /// The minimum and the maximum.
    pub within: (f64, f64),
}

macro_rules! constants {
    ($($name:ident in $low:literal, $high:literal;)*) => {
        /// The fitted constants.
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
    recurrent_us in 0.5, 60.0;
    shared_recurrent_us in 0.5, 60.0;
    light_us in 0.05, 5.0;
    token_us in 5.0, 300.0;
    matrix_factor in 1.0, 60.0;
    bandwidth_share in 0.5, 0.9;
    bytes_per_cycle in 2.0, 20.0;
    scattered_bytes_per_cycle in 1.0, 20.0;
    no_dot_share in 0.2, 1.0;
    matrix_share in 0.1, 2.0;
    attention_share in 0.02, 1.0;
    expert_share in 0.2, 1.0;
    unpack_cycles in 0.05, 4.0;
    ported_share in 0.62, 1.0;
    host_share in 0.2, 1.0;
    host_us in 5.0, 200.0;
    host_link_share in 0.1, 1.2;
    reduction_latencies in 0.2, 6.0;
    old_reductions in 1.0, 40.0;
    reduction_growth in 0.2, 1.0;
    link_share in 0.1, 1.2;
    handover_us in 5.0, 600.0;
    overlap in 0.1, 1.0;
}

macro_rules! others {
    ($($(#[$doc:meta])* $name:ident = $value:literal in $low:literal, $high:literal;)*) => {
        /// Other fitted numbers: factors for ik_llama.cpp and for old engines.
        #[derive(Clone, Copy, Debug)]
        pub struct Others {
            $($(#[$doc])* pub $name: f64,)*
        }

        impl Others {
            /// The fitted values.
            pub const FITTED: Others = Others { $($name: $value,)* };

            /// Each number's name, field, minimum and maximum.
            const ALL: &[(&str, fn(&mut Others) -> &mut f64, (f64, f64))] =
                &[$((stringify!($name), |o| &mut o.$name, ($low, $high))),*];

            /// Returns the lines that `fit-cost` prints, to paste here.
            pub fn lines(mut self) -> Vec<String> {
                let each = Others::ALL.iter();
                each.map(|(name, of, _)| format!("{name} = {:.3}", of(&mut self))).collect()
            }
        }
    };
}

others! {
    /// Factor on ik_llama.cpp's fixed times.
    ik_fixed = 0.464 in 0.3, 2.0;
    /// Factor on the speed of ik_llama.cpp's matrix-matrix products.
    ik_matrix = 1.210 in 0.5, 3.0;
    /// Additional factor on ik_llama.cpp's matrix-matrix products with experts.
    ik_experts = 0.471 in 0.2, 4.0;
    /// Factor on the latency of ik_llama.cpp's reductions.
    ik_reduction = 0.873 in 0.1, 3.0;
    /// Factor on the share of link bandwidth that ik_llama.cpp reaches.
    ik_link = 3.383 in 0.5, 5.0;
    /// Factor on the fixed time of ik_llama.cpp's recurrent layers with shared tensors.
    ik_recurrent = 36.269 in 0.3, 60.0;
    /// Factor on ik_llama.cpp's fixed times before September 2025.
    early_ik = 4.000 in 0.5, 4.0;
    /// Factor on the time to unpack quantised weights before 2025.
    old_unpacking = 7.963 in 0.5, 16.0;
    /// Factor on the share of link bandwidth that reductions by copies reach.
    copied_link = 0.314 in 0.05, 1.0;
    /// Factor on the latency of reductions by copies.
    copied_latency = 2.739 in 0.8, 8.0;
}

/// The expected spread of class factors, as a logarithm. A factor with few rows stays near 1.
const CLASS_SPREAD: f64 = 0.3;

/// The number of random changes to several constants per round.
const TRIES: usize = 400;

/// The profiles of both engines.
#[derive(Clone, Copy, Debug)]
pub struct Profiles {
    /// llama.cpp's profile.
    pub llama: EngineProfile,
    /// The other fitted numbers.
    pub others: Others,
}

#[derive(Clone, Copy, Debug)]
enum Number {
    Constant(usize),
    Other(usize),
    Reads(CardClass),
    Products(CardClass),
}

struct Weighed<'a> {
    cases: Vec<(&'a Case, f64)>,
    classes: BTreeSet<CardClass>,
}

impl<'a> Weighed<'a> {
    /// Weighs the cases. A source with `n` rows has weight √`n`. Decoding with shared tensors counts three times,
    /// because few sources measure it.
    fn new(cases: &[&'a Case]) -> Weighed<'a> {
        let mut sources: BTreeMap<&str, f64> = BTreeMap::new();
        for c in cases {
            *sources.entry(&c.row.source).or_default() += 1.0;
        }
        let weight = |c: &Case| sources[c.row.source.as_str()].powf(-0.5);
        let classes = cases.iter().flat_map(|c| &c.topology().devices);
        Weighed {
            cases: cases.iter().map(|c| (*c, weight(c))).collect(),
            classes: classes.map(|d| d.class).collect(),
        }
    }

    fn numbers(&self) -> Vec<Number> {
        let constants = (0..CONSTANTS.len()).map(Number::Constant);
        let others = (0..Others::ALL.len()).map(Number::Other);
        let reads = self.classes.iter().map(|c| Number::Reads(*c));
        let products = self.classes.iter().map(|c| Number::Products(*c));
        constants
            .chain(others)
            .chain(reads)
            .chain(products)
            .collect()
    }
}

impl Profiles {
    /// Returns the checked-in profiles.
    pub fn checked_in() -> Profiles {
        Profiles {
            llama: *EngineProfile::of(Engine::LlamaCpp),
            others: Others::FITTED,
        }
    }

    /// Returns the checked-in profiles without differences between card classes.
    pub fn start() -> Profiles {
        let mut out = Profiles::checked_in();
        for class in CardClass::ALL {
            *out.llama.classes.of_mut(class) = ClassFactor::ONE;
        }
        out
    }

    /// Returns the profile of an engine.
    pub fn of(&self, engine: Engine) -> EngineProfile {
        let mut p = self.llama;
        let o = &self.others;
        if engine == Engine::IkLlamaCpp {
            p.product_us *= o.ik_fixed;
            p.attention_us *= o.ik_fixed;
            p.light_us *= o.ik_fixed;
            p.recurrent_us *= o.ik_fixed;
            p.shared_recurrent_us *= o.ik_fixed * o.ik_recurrent;
            p.matrix_share *= o.ik_matrix;
            p.attention_share *= o.ik_matrix;
            p.unpack_cycles /= o.ik_matrix;
            p.expert_share *= o.ik_experts;
            p.reduction_latencies *= o.ik_reduction;
            p.link_share *= o.ik_link;
        }
        p
    }

    /// Returns the profile for a row's engine and date.
    pub fn of_row(&self, row: &Row) -> EngineProfile {
        let mut p = self.of(row.engine);
        let o = &self.others;
        if row.old {
            p.unpack_cycles *= o.old_unpacking;
        }
        if row.early {
            p.product_us *= o.early_ik;
            p.attention_us *= o.early_ik;
            p.light_us *= o.early_ik;
        }
        if row.copied {
            p.link_share *= o.copied_link;
            p.reduction_latencies *= o.copied_latency;
        }
        p
    }

    fn value(&mut self, number: Number) -> (&mut f64, (f64, f64)) {
        match number {
            Number::Constant(i) => ((CONSTANTS[i].of)(&mut self.llama), CONSTANTS[i].within),
            Number::Other(i) => {
                let (_, of, within) = Others::ALL[i];
                (of(&mut self.others), within)
            }
            Number::Reads(class) => (&mut self.llama.classes.of_mut(class).reads, (0.3, 3.0)),
            Number::Products(class) => (&mut self.llama.classes.of_mut(class).products, (0.3, 3.0)),
        }
    }

    /// Returns the errors of the cases.
    pub fn errors(&self, cases: &[&Case], phases: &[Phase]) -> Vec<f64> {
        let each = cases.iter().flat_map(|c| {
            let profile = self.of_row(&c.row);
            let of = |&phase| c.error(phase, &profile);
            phases.iter().filter_map(of).collect::<Vec<_>>()
        });
        each.collect()
    }

    /// Computes the mean error, which the fit minimises. Small errors count by their square, large errors almost
    /// linearly, because some published rows are wrong by a factor.
    fn loss(&self, weighed: &Weighed<'_>) -> f64 {
        const SCALE: f64 = 0.2;
        let (mut sum, mut weights) = (0.0, 0.0);
        for (c, weight) in &weighed.cases {
            let profile = self.of_row(&c.row);
            for (phase, counts) in [(Phase::Decode, 1.0), (Phase::Prompt, 0.5)] {
                let Some(e) = c.error(phase, &profile) else {
                    continue;
                };
                let shared = phase == Phase::Decode && c.row.mode == SplitMode::Tensor;
                let w = weight * counts * if shared { 3.0 } else { 1.0 };
                sum += w * ((1.0 + (e / SCALE).powi(2)).sqrt() - 1.0);
                weights += w;
            }
        }
        let far = |x: f64| (x.ln() / CLASS_SPREAD).powi(2);
        let classes = weighed.classes.iter().map(|c| self.llama.classes.of(*c));
        let prior: f64 = classes.map(|f| far(f.reads) + far(f.products)).sum();
        (sum + 0.1 * prior) / weights.max(1.0)
    }

    /// Fits the profiles, starting from `self`. Calls `tell` with the loss after each round.
    #[must_use]
    pub fn fitted(mut self, cases: &[&Case], tell: &mut dyn FnMut(f64)) -> Profiles {
        let weighed = Weighed::new(cases);
        let numbers = weighed.numbers();
        let mut best = self.loss(&weighed);
        let mut state = 12_u64;
        let mut random = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut step = 0.2_f64;
        while step > 0.006 {
            let before = best;
            for _ in 0..TRIES {
                let mut next = self;
                for &n in &numbers {
                    let (value, (low, high)) = next.value(n);
                    let moved = if random() < 0.1 {
                        2.0 * random() - 1.0
                    } else {
                        0.0
                    };
                    *value = (*value * (2.0 * step * moved).exp()).clamp(low, high);
                }
                let loss = next.loss(&weighed);
                if loss < best {
                    (self, best) = (next, loss);
                }
            }
            for &n in &numbers {
                for factor in [step.exp(), (-step).exp()] {
                    loop {
                        let mut next = self;
                        let (value, (low, high)) = next.value(n);
                        *value = (*value * factor).clamp(low, high);
                        let loss = next.loss(&weighed);
                        if loss >= best - 1e-7 {
                            break;
                        }
                        (self, best) = (next, loss);
                    }
                }
            }
            tell(best);
            if before - best < 2e-4 {
                step /= 2.0;
            }
        }
        self
    }
}
