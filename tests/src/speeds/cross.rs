//! Cross-validation: the error of each row with constants fitted on other sources, and the resulting bands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value as Json, json};
use tpc_core::calibration::{BandTable, CellKey, ObservedError};
use tpc_passes::machine::Engine;

use super::fit::Profiles;
use super::{Case, Phase};

/// The number of groups of sources. Each group is estimated with constants fitted on the other groups.
const FOLDS: usize = 8;

/// The error of a row with constants fitted on other sources.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOut {
    /// The row.
    pub id: u64,
    /// The measured phase.
    pub phase: Phase,
    /// ln(estimated / measured).
    pub error: f64,
}

/// Returns the kind of a case's estimate.
pub fn key(c: &Case) -> CellKey {
    CellKey {
        ik: c.row.engine == Engine::IkLlamaCpp,
        way: c.decode.way(),
        back_end: Some(c.row.back_end),
        class: Some(c.topology().devices[0].class),
        kind: Some(c.decode.model_kind()),
    }
}

/// Assigns sources to folds: the largest source first, each to the fold with the fewest rows.
fn folds(cases: &[Case]) -> BTreeMap<&str, usize> {
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for c in cases {
        *sizes.entry(&c.row.source).or_default() += 1;
    }
    let mut sources: Vec<(&str, usize)> = sizes.into_iter().collect();
    sources.sort_by_key(|(name, n)| (std::cmp::Reverse(*n), *name));
    let mut filled = [0; FOLDS];
    let mut out = BTreeMap::new();
    for (source, n) in sources {
        let least = (0..FOLDS).min_by_key(|f| filled[*f]).unwrap_or(0);
        filled[least] += n;
        out.insert(source, least);
    }
    out
}

/// Returns the errors of all rows with constants fitted on other sources. Calls `tell` after each fold.
pub fn held_out(cases: &[Case], start: Profiles, tell: &mut dyn FnMut(usize)) -> Vec<HeldOut> {
    let folds = folds(cases);
    let mut out = Vec::new();
    for fold in 0..FOLDS {
        let is_out = |c: &&Case| folds[c.row.source.as_str()] == fold;
        let (away, rest): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(is_out);
        let profiles = start.fitted(&rest, &mut |_| {});
        for c in away {
            let profile = profiles.of_row(&c.row);
            for phase in [Phase::Decode, Phase::Prompt] {
                let error = c.error(phase, &profile);
                out.extend(error.map(|error| HeldOut {
                    id: c.row.id,
                    phase,
                    error,
                }));
            }
        }
        tell(fold);
    }
    out.sort_by_key(|h| (h.id, h.phase));
    out
}

/// Returns the errors of decoding, by kind.
pub fn seen(cases: &[Case], held: &[HeldOut]) -> Vec<ObservedError> {
    let by_id: BTreeMap<u64, &Case> = cases.iter().map(|c| (c.row.id, c)).collect();
    let decoding = held.iter().filter(|h| h.phase == Phase::Decode);
    let each = decoding.filter_map(|h| {
        let c = by_id.get(&h.id)?;
        Some(ObservedError {
            key: key(c),
            source: c.row.source.clone(),
            // Round to three digits, as in the file.
            error: (h.error * 1000.0).round() / 1000.0,
        })
    });
    each.collect()
}

/// Counts the errors inside the band of all other sources, and all errors.
pub fn coverage(
    seen: &[ObservedError],
    counts: impl Fn(&ObservedError, bool) -> bool,
) -> (usize, usize) {
    let sources: BTreeSet<&str> = seen.iter().map(|s| s.source.as_str()).collect();
    let (mut inside, mut all) = (0, 0);
    for source in sources {
        let (own, others): (Vec<ObservedError>, Vec<ObservedError>) =
            seen.iter().cloned().partition(|s| s.source == source);
        let table = BandTable::new(&others);
        for s in own {
            let band = table.band(s.key);
            if counts(&s, band.is_calibrated()) {
                all += 1;
                inside += usize::from(s.error.abs() <= band.error);
            }
        }
    }
    (inside, all)
}

fn path() -> PathBuf {
    crate::data().join("speeds").join("held-out.json")
}

/// Reads the errors of `fit-cost --bands`.
///
/// # Panics
/// Panics if the file is missing or malformed.
pub fn read() -> Vec<HeldOut> {
    let path = path();
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    let json: Json = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    let rows = json.as_array().into_iter().flatten();
    let one = |r: &Json, name: &str, phase| {
        Some(HeldOut {
            id: r["id"].as_u64()?,
            phase,
            error: r[name].as_f64()?,
        })
    };
    let each = rows.flat_map(|r| {
        let decode = one(r, "decode", Phase::Decode);
        decode
            .into_iter()
            .chain(one(r, "prompt", Phase::Prompt))
            .collect::<Vec<_>>()
    });
    each.collect()
}

/// Writes the errors, one row per line.
///
/// # Panics
/// Panics if the file cannot be written.
pub fn write(held: &[HeldOut]) {
    let mut rows: BTreeMap<u64, Json> = BTreeMap::new();
    for h in held {
        let name = match h.phase {
            Phase::Decode => "decode",
            Phase::Prompt => "prompt",
        };
        let row = rows.entry(h.id).or_insert_with(|| json!({"id": h.id}));
        row[name] = json!((h.error * 1000.0).round() / 1000.0);
    }
    let lines: Vec<String> = rows.values().map(ToString::to_string).collect();
    let text = format!("[\n{}\n]\n", lines.join(",\n"));
    std::fs::write(path(), text).unwrap_or_else(|e| panic!("{e}"));
}
