use serde::Deserialize;
use tpc_passes::machine::Way;
use tpc_passes::machine::{Calibration, Engine};

use super::error::{Place, TopologyError, parse};
use super::value::{Raw, number, words};

const MAX_ROWS: f64 = 1e6;

/// Residual error of a calibration that does not state one.
const UNSTATED: f64 = 0.3;

#[derive(Deserialize)]
#[serde(rename = "Calibration", deny_unknown_fields)]
struct CalibrationEntry<'a> {
    #[serde(borrow, default)]
    engine: Raw<'a>,
    #[serde(borrow, default)]
    bandwidth: Raw<'a>,
    #[serde(borrow, default)]
    compute: Raw<'a>,
    #[serde(borrow, default)]
    launches: Raw<'a>,
    #[serde(borrow, default)]
    reductions: Raw<'a>,
    #[serde(borrow, default)]
    handover: Raw<'a>,
    #[serde(borrow, default)]
    rows: Raw<'a>,
    #[serde(borrow, default)]
    residual: Raw<'a>,
    #[serde(borrow, default)]
    prompt_residual: Raw<'a>,
    #[serde(borrow, default)]
    ways: Raw<'a>,
}

pub(super) fn read(at: Place<'_>) -> Result<Calibration, TopologyError> {
    let entry: CalibrationEntry<'_> = parse(at)?;
    let Some(name) = words("engine", entry.engine, at)? else {
        let cure = "add `engine: \"llama.cpp\"`; `tpc plan --calibrate FILE` writes a calibration";
        return Err(at.wrong("the calibration lacks an engine").cure(cure));
    };
    let Some(engine) = Engine::from_name(&name) else {
        let known = Engine::ALL.map(Engine::name).join(", ");
        let shown = tpc_diag::suggest::shorten(&name);
        return Err(at
            .of_field(entry.engine)
            .wrong(format!("unknown engine `{shown}`"))
            .cure(format!("write one of {known}")));
    };
    let mut out = Calibration::none(engine);
    let factors = [
        ("bandwidth", entry.bandwidth, &mut out.bandwidth),
        ("compute", entry.compute, &mut out.compute),
        ("launches", entry.launches, &mut out.launches),
        ("reductions", entry.reductions, &mut out.reductions),
        ("handover", entry.handover, &mut out.handover),
    ];
    for (field, raw, factor) in factors {
        if let Some(x) = read_within(field, raw, at, Calibration::WITHIN)? {
            *factor = x;
        }
    }
    out.rows = read_within("rows", entry.rows, at, (1.0, MAX_ROWS))?.unwrap_or(1.0) as u32;
    let residual = read_within("residual", entry.residual, at, (0.0, 3.0))?;
    out.residual = residual.unwrap_or(UNSTATED);
    let residual = read_within("prompt_residual", entry.prompt_residual, at, (0.0, 3.0))?;
    out.prompt_residual = residual.unwrap_or(UNSTATED);
    for word in words("ways", entry.ways, at)?
        .unwrap_or_default()
        .split_whitespace()
    {
        let Some(way) = Way::ALL.into_iter().find(|w| w.name() == word) else {
            let known = Way::ALL.map(Way::name).join(" ");
            let shown = tpc_diag::suggest::shorten(word);
            return Err(at
                .of_field(entry.ways)
                .wrong(format!("ways: unknown way `{shown}`"))
                .cure(format!("write some of \"{known}\"")));
        };
        out.ways = out.ways.with(way);
    }
    Ok(out)
}

fn read_within(
    field: &str,
    raw: Raw<'_>,
    at: Place<'_>,
    (low, high): (f64, f64),
) -> Result<Option<f64>, TopologyError> {
    match number(field, raw, at)? {
        Some(x) if !(low..=high).contains(&x) => Err(at
            .of_field(raw)
            .wrong(format!("{field} cannot be {x}"))
            .cure(format!("write a number from {low} to {high}"))),
        found => Ok(found),
    }
}

pub(super) fn write(c: &Calibration) -> String {
    let ways = Way::ALL.into_iter().filter(|w| c.ways.contains(*w));
    let ways: Vec<&str> = ways.map(Way::name).collect();
    format!(
        "calibration: (engine: \"{}\", bandwidth: {:.4}, compute: {:.4}, launches: {:.4}, reductions: {:.4}, \
         handover: {:.4}, rows: {}, residual: {:.4}, prompt_residual: {:.4}, ways: \"{}\"),",
        c.engine.name(),
        c.bandwidth,
        c.compute,
        c.launches,
        c.reductions,
        c.handover,
        c.rows,
        c.residual,
        c.prompt_residual,
        ways.join(" ")
    )
}
