use std::collections::BTreeMap;
use std::rc::Rc;

use tpc_diag::{Diagnostic, codes};
use tpc_passes::machine::Way;
use tpc_passes::machine::{Calibration, Engine, EngineProfile, Topology};
use tpc_passes::plan::Bill;

use super::measured::{Measurement, Test};
use super::reading::Reading;
use crate::pipeline::{Origin, Outline, ways};
use crate::placement::{HostExperts, Placement, SplitMode, parse_cache_type};

/// Maximum number of plans per file; a plan takes a fraction of a second.
const MAX_PLANS: usize = 16;

/// Maximum relative difference of parameters between a row and the model. Some programs count draft blocks and
/// embeddings.
const SAME_MODEL: f64 = 0.06;

/// Minimum residual error. Measurements of one machine differ by this from day to day.
const LEAST_RESIDUAL: f64 = 0.03;

/// A measured row, with the kernels and transfers of its batch.
struct Case {
    row: Measurement,
    bill: Rc<Bill>,
    tokens: f64,
    batches: f64,
}

impl Case {
    fn estimate(&self, topology: &Topology, profile: &EngineProfile) -> f64 {
        let times = self.bill.times(topology, profile);
        match self.row.test {
            Test::Generation(_) => 1e6 / times.parts().total(),
            Test::Prompt(_) => self.tokens * 1e6 / times.batch_us(self.batches, profile),
        }
    }

    fn error(&self, topology: &Topology, profile: &EngineProfile) -> f64 {
        (self.estimate(topology, profile) / self.row.speed).ln()
    }

    fn is_prompt(&self) -> bool {
        matches!(self.row.test, Test::Prompt(_))
    }
}

/// A measured row with two estimates.
#[derive(Clone, Debug, PartialEq)]
pub struct ReproducedRow {
    /// The measurement.
    pub row: Measurement,
    /// Estimate of the profile.
    pub before: f64,
    /// Estimate of the calibrated profile.
    pub after: f64,
}

/// The result of a calibration.
#[derive(Clone, Debug)]
pub struct CalibrationFit {
    /// The factors.
    pub calibration: Calibration,
    /// Rows used.
    pub rows: Vec<ReproducedRow>,
    /// Rows and lines not used, with the reasons.
    pub left_out: Vec<Diagnostic>,
}

type Factor = fn(&mut Calibration) -> &mut f64;

/// Factors to fit, with the expected spread of their logarithms. A few rows change a factor little.
const FACTORS: [(Factor, f64); 5] = [
    (|c| &mut c.bandwidth, 0.3),
    (|c| &mut c.compute, 0.6),
    (|c| &mut c.launches, 0.4),
    (|c| &mut c.reductions, 1.2),
    (|c| &mut c.handover, 0.6),
];

const SPREAD: f64 = 0.04;

/// Fits the factors of the placement's machine to the rows that measure the model.
///
/// # Errors
/// Returns the diagnostics of the model, or TPC0414 if no row measures the model.
pub fn calibrate(
    file: &str,
    reading: Reading,
    origin: Origin<'_>,
    placement: &Placement,
) -> Result<CalibrationFit, Vec<Diagnostic>> {
    let engine = match placement.engine {
        Engine::Tpc => Engine::LlamaCpp,
        engine => engine,
    };
    let mut planner = Planner {
        file,
        origin,
        placement: Placement {
            engine,
            ..placement.clone()
        },
        params: origin.prepare(placement)?.size.params as f64,
        outlines: BTreeMap::new(),
    };
    planner.placement.topology.calibration = None;
    // The measured configurations ran, so ignore the memory.
    for d in &mut planner.placement.topology.devices {
        d.memory = None;
    }
    let (mut cases, mut left_out) = (Vec::new(), reading.complaints);
    for row in reading.rows {
        match planner.case(row) {
            Ok(case) => cases.push(case),
            Err(d) if left_out.len() < 40 => left_out.push(*d),
            Err(_) => {}
        }
    }
    if cases.is_empty() {
        let message = format!("{file}: no row measures this model on these devices");
        let d = Diagnostic::new(&codes::CALIBRATION_FILE, file, message);
        left_out.insert(0, d.help("give the measured model and devices"));
        return Err(left_out);
    }
    let topology = planner.placement.topology;
    let calibration = fit(engine, &topology, &cases);
    let profile = EngineProfile::of(engine);
    let calibrated = calibration.apply_to(profile);
    let rows = cases.into_iter().map(|c| ReproducedRow {
        before: c.estimate(&topology, profile),
        after: c.estimate(&topology, &calibrated),
        row: c.row,
    });
    Ok(CalibrationFit {
        calibration,
        rows: rows.collect(),
        left_out,
    })
}

struct Planner<'a> {
    file: &'a str,
    origin: Origin<'a>,
    placement: Placement,
    params: f64,
    outlines: BTreeMap<String, Rc<Outline>>,
}

impl Planner<'_> {
    fn refuse(&self, row: &Measurement, wrong: &str, cure: &str) -> Box<Diagnostic> {
        let message = format!("{}, line {}: {}: {wrong}", self.file, row.line, row.name());
        let d = Diagnostic::milder(&codes::CALIBRATION_FILE, self.file, message);
        Box::new(d.help(cure.to_owned()))
    }

    fn placement(&self, row: &Measurement) -> Result<Placement, Box<Diagnostic>> {
        let mut p = self.placement.clone();
        let n = p.devices.len();
        if let Some(devices) = row.devices.filter(|d| *d != n) {
            let wrong = format!("the row was measured on {devices} devices, the plan has {n}");
            return Err(self.refuse(row, &wrong, "give the measured devices with --devices"));
        }
        p.split_mode = match (n, row.split_mode.as_deref()) {
            (1, _) | (_, Some("none")) => SplitMode::None,
            (_, Some("tensor" | "graph")) => SplitMode::Tensor,
            (_, Some("layer") | None) => SplitMode::Layer,
            (_, Some(_)) => {
                let cure = "measure with -sm layer, tensor or none";
                return Err(self.refuse(row, "tpc does not plan this split mode", cure));
            }
        };
        for (i, named) in row.cache_types.iter().enumerate() {
            let Some(name) = named else {
                continue;
            };
            let ty = parse_cache_type("-ctk", name).map_err(|_| {
                let cure = "measure with f16 or q8_0 caches";
                self.refuse(row, "tpc does not plan this cache type", cure)
            })?;
            *[&mut p.cache_type_k, &mut p.cache_type_v][i] = ty;
        }
        p.tensor_split = row.shares.clone().filter(|s| s.len() == n);
        p.host_experts = row
            .host_experts
            .map_or(HostExperts::NONE, HostExperts::First);
        p.n_gpu_layers = row.gpu_layers.filter(|n| *n < 200);
        p.ubatch_size = row.ubatch.unwrap_or(Placement::UBATCH).min(16_384);
        let (Test::Prompt(tokens) | Test::Generation(tokens)) = row.test;
        let cells = row.depth + tokens + 256;
        let sizes = [4096, 20_480, 81_920, 262_144, 1 << 20];
        p.ctx_size = Some(sizes.into_iter().find(|s| *s >= cells).unwrap_or(cells));
        Ok(p)
    }

    fn case(&mut self, row: Measurement) -> Result<Case, Box<Diagnostic>> {
        if let Some(params) = row
            .params
            .filter(|p| (p / self.params - 1.0).abs() > SAME_MODEL)
        {
            let wrong = format!(
                "the measured model has {:.2} B parameters, this one has {:.2} B",
                params / 1e9,
                self.params / 1e9
            );
            return Err(self.refuse(&row, &wrong, "give the measured model"));
        }
        let placement = self.placement(&row)?;
        let outline = self.outline(&row, &placement)?;
        let (prompt, tokens, depth) = match row.test {
            Test::Generation(n) => (1, 1, row.depth + n / 2 + 1),
            Test::Prompt(n) => {
                let tokens = n.min(placement.ubatch_size);
                (n, tokens, row.depth + (n - tokens) / 2 + tokens)
            }
        };
        Ok(Case {
            bill: Rc::new(outline.bill_of_batch(tokens, depth)),
            tokens: tokens as f64,
            batches: (prompt.min(2048) as f64 / tokens as f64).round().max(1.0),
            row,
        })
    }

    fn outline(
        &mut self,
        row: &Measurement,
        p: &Placement,
    ) -> Result<Rc<Outline>, Box<Diagnostic>> {
        let key = format!(
            "{:?} {:?} {:?} {} {:?} {:?} {:?} {:?}",
            p.split_mode,
            p.tensor_split,
            p.host_experts,
            p.ubatch_size,
            p.n_gpu_layers,
            p.ctx_size,
            p.cache_type_k,
            p.cache_type_v
        );
        if let Some(known) = self.outlines.get(&key) {
            return Ok(Rc::clone(known));
        }
        if self.outlines.len() >= MAX_PLANS {
            let wrong = format!("the file has more than {MAX_PLANS} different configurations");
            return Err(self.refuse(row, &wrong, "remove the rows that you do not need"));
        }
        let way = ways(p).into_iter().next();
        let outline = match (self.origin.prepare(p), way) {
            (Ok(prepared), Some(way)) => prepared.outline(p, &way),
            (Err(d), _) => Err(d),
            (Ok(_), None) => Err(Vec::new()),
        };
        let outline = outline.map_err(|d| {
            let why = d.first().map_or_else(String::new, |d| format!(": {d}"));
            self.refuse(
                row,
                &format!("tpc cannot plan this configuration{why}"),
                "remove the row",
            )
        })?;
        let outline = Rc::new(outline);
        self.outlines.insert(key, Rc::clone(&outline));
        Ok(outline)
    }
}

fn loss(c: &Calibration, topology: &Topology, cases: &[Case]) -> f64 {
    let profile = c.apply_to(EngineProfile::of(c.engine));
    let errors = cases.iter().map(|case| {
        let e = case.error(topology, &profile) / SPREAD;
        // The loss of outliers is linear.
        if e.abs() > 3.0 {
            6.0 * e.abs() - 9.0
        } else {
            e * e
        }
    });
    let mut copy = *c;
    let far = FACTORS.map(|(of, spread)| (of(&mut copy).ln() / spread).powi(2));
    errors.sum::<f64>() + far.iter().sum::<f64>()
}

/// Fits one factor at a time with halving steps. This needs no derivatives and gives the same result on every machine.
fn fit(engine: Engine, topology: &Topology, cases: &[Case]) -> Calibration {
    let mut out = Calibration::none(engine);
    let mut best = loss(&out, topology, cases);
    let mut step = 0.32_f64;
    while step > 0.002 {
        let before = best;
        for (of, _) in FACTORS {
            for factor in [step.exp(), (-step).exp()] {
                for _ in 0..8 {
                    let mut next = out;
                    let value = of(&mut next);
                    *value = (*value * factor).clamp(Calibration::WITHIN.0, Calibration::WITHIN.1);
                    let loss = loss(&next, topology, cases);
                    if loss >= best - 1e-9 {
                        break;
                    }
                    (out, best) = (next, loss);
                }
            }
        }
        if before - best < 1e-3 {
            step /= 2.0;
        }
    }
    out.rows = u32::try_from(cases.len()).unwrap_or(u32::MAX);
    let profile = out.apply_to(EngineProfile::of(engine));
    let of = |prompt: bool| -> Vec<f64> {
        let here = cases.iter().filter(|c| c.is_prompt() == prompt);
        here.map(|c| c.error(topology, &profile).abs()).collect()
    };
    (out.residual, out.prompt_residual) = (residual(&of(false)), residual(&of(true)));
    for c in cases.iter().filter(|c| !c.is_prompt()) {
        out.ways = out.ways.with(way(c));
    }
    out
}

fn way(case: &Case) -> Way {
    case.bill.way()
}

/// Computes the residual error: the largest error, increased if rows are few. Returns the default of an untested
/// calibration if there are none.
fn residual(errors: &[f64]) -> f64 {
    let n = errors.len() as f64;
    if errors.is_empty() {
        return 0.3;
    }
    let worst = errors.iter().copied().fold(0.0, f64::max);
    (worst * (1.0 + 1.0 / n)).max(LEAST_RESIDUAL + 0.12 / n)
}
