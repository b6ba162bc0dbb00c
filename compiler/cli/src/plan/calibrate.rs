//! `--calibrate`: fits a machine's speeds to measurements, and writes a topology file.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Args, Job};
use crate::input;
use crate::output::{self, Failure};
use crate::progress::Progress;
use tpc_core::calibration::{CalibrationFit, LogBuffer, MAX_BYTES, calibrate, read};
use tpc_core::format::{bytes, printable};
use tpc_core::pipeline::Origin;
use tpc_core::placement::Placement;
use tpc_core::placement::describe;
use tpc_core::topology::with_calibration;
use tpc_diag::{Diagnostic, codes};

/// Calibrates the machine with the file of `--calibrate`, if given. Returns notes on the fit.
pub(super) fn apply(
    args: &Args,
    job: &Job,
    placement: &mut Placement,
) -> Result<Vec<Diagnostic>, Failure> {
    let Some(path) = &args.calibrate else {
        return Ok(Vec::new());
    };
    let name = input::shown(path);
    let file = input::read_file(path, MAX_BYTES)?;
    let text = String::from_utf8_lossy(&file);
    let mut reading = read(&name, &text).map_err(Failure::from_diagnostics)?;
    let (buffers, further) = (std::mem::take(&mut reading.buffers), reading.further);
    let Some(model) = job.source.model()? else {
        let message = "--calibrate needs a model, not a capture";
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--calibrate", message);
        return Err(Failure::usage(
            d.help("give the model's file instead of --graph"),
        ));
    };
    let progress = Progress::start("planning the measured model".to_owned());
    let found = calibrate(&name, reading, Origin::File(&model.file), placement)
        .map_err(Failure::from_diagnostics)?;
    drop(progress);
    placement.engine = found.calibration.engine;
    placement.topology.calibration = Some(found.calibration);
    let mut out = vec![note(&name, &found, &buffers, further)];
    if let Some(target) = &args.write_topology {
        write(target, job, placement)?;
    }
    out.extend(found.left_out);
    Ok(out)
}

fn note(name: &str, found: &CalibrationFit, buffers: &[LogBuffer], further: usize) -> Diagnostic {
    let c = &found.calibration;
    let factors = [
        ("reading", c.bandwidth),
        ("prompt arithmetic", c.compute),
        ("fixed times", c.launches),
        ("reductions", c.reductions),
        ("stage handovers", c.handover),
    ];
    let changed: Vec<String> = factors
        .iter()
        .filter(|(_, f)| (f - 1.0).abs() > 0.005)
        .map(|(what, f)| format!("{what} × {f:.2}"))
        .collect();
    let changed = match changed.as_slice() {
        [] => "the profile is unchanged".to_owned(),
        some => some.join(", "),
    };
    let percent = |x: f64| format!("{:.0} %", x * 100.0);
    let engine = c.engine.name();
    let rows = match c.rows {
        1 => "1 measurement".to_owned(),
        n => format!("{n} measurements"),
    };
    let prompts = match c.prompt_residual {
        x if found.rows.iter().all(|r| r.row.name().starts_with("tg")) || x <= 0.0 => String::new(),
        x => format!(", prompts within {}", percent(x)),
    };
    let mut message = format!(
        "calibrated {engine} with {rows} of {name}: {changed}; estimates of decoding are within {}{prompts}",
        percent(c.residual)
    );
    if further > 0 {
        message += &format!("; {further} more lines are unusable");
    }
    let mut held: BTreeMap<&str, f64> = BTreeMap::new();
    for b in buffers {
        *held.entry(&b.device).or_default() += b.mib;
    }
    if !held.is_empty() {
        let each = held
            .iter()
            .map(|(d, mib)| format!("{} {}", printable(d), bytes((mib * 1048576.0) as u64)));
        message += &format!("; buffers: {}", each.collect::<Vec<_>>().join(", "));
    }
    let d = Diagnostic::new(&codes::CALIBRATED, "--calibrate", message);
    d.help("keep the calibration with --write-topology FILE.ron, use it with --topology FILE.ron")
}

/// Writes the calibration into a copy of the topology file, or into a new topology of these devices.
fn write(target: &Path, job: &Job, placement: &Placement) -> Result<(), Failure> {
    let Some(calibration) = &placement.topology.calibration else {
        return Ok(());
    };
    let given = job.placement.topology_bytes()?;
    let text = match given {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => describe(placement),
    };
    let text = with_calibration(&text, calibration).map_err(|e| {
        let name = target.display().to_string();
        let d = Diagnostic::new(&codes::TOPOLOGY_FILE, &name, e.to_string());
        Failure::usage(
            d.help(
                e.cure
                    .unwrap_or_else(|| "`tpc explain TPC0403` shows a valid file".to_owned()),
            ),
        )
    })?;
    output::replace(target, text.as_bytes())
}
