//! Error bands: the errors of estimates against measurements, per kind of estimate.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use tpc_passes::machine::Way;
use tpc_passes::machine::{Backend, CardClass, Engine, Topology};
use tpc_passes::plan::{Estimate, ModelKind};

/// Minimum number of measurements for a kind to have its own band.
pub const LEAST_ROWS: usize = 4;

/// Minimum band. Measurements of one machine differ by this from day to day.
const LEAST: f64 = 0.05;

/// Minimum band of a kind without measurements: a factor of two.
const GUESS: f64 = std::f64::consts::LN_2;

/// A kind of estimate. `None` matches any value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellKey {
    /// True for ik_llama.cpp, false for llama.cpp.
    pub ik: bool,
    /// The split: one device, layers, tensors, or weights on the host.
    pub way: Way,
    /// The back end.
    #[serde(default)]
    pub back_end: Option<Backend>,
    /// The devices' class.
    #[serde(default)]
    pub class: Option<CardClass>,
    /// The model's kind.
    #[serde(default)]
    pub kind: Option<ModelKind>,
}

/// The errors of a kind of estimate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The kind.
    pub key: CellKey,
    /// Number of measurements.
    pub rows: usize,
    /// Number of publishers of the measurements.
    pub sources: usize,
    /// The largest error, as |ln(estimated / measured)|.
    pub worst: f64,
    /// Error bound of 90 % of further estimates.
    pub band: f64,
}

/// The error of an estimate for a row that was not used for fitting.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedError {
    /// The kind, without `None` fields.
    pub key: CellKey,
    /// The publisher.
    pub source: String,
    /// ln(estimated / measured).
    pub error: f64,
}

/// The bands of all kinds of estimate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BandTable {
    cells: BTreeMap<CellKey, Cell>,
}

/// The band of an estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Error bound of 90 % of estimates, as
    /// ln(estimated / true)
    /// .
    pub error: f64,
    /// Number of measurements.
    pub rows: usize,
    /// Kinds without measurements; empty if calibrated.
    pub not_calibrated_for: Vec<String>,
}

impl Band {
    /// Returns the lowest and the highest speed within the band.
    pub fn range(&self, speed: f64) -> [f64; 2] {
        [speed * (-self.error).exp(), speed * self.error.exp()]
    }

    /// True if estimates of this kind are measured.
    pub const fn is_calibrated(&self) -> bool {
        self.not_calibrated_for.is_empty()
    }
}

impl CellKey {
    /// Lists this kind, then the kinds that contain it.
    fn wider(self) -> [CellKey; 5] {
        let any = |back_end, class, kind| CellKey {
            back_end,
            class,
            kind,
            ..self
        };
        [
            self,
            any(self.back_end, self.class, None),
            any(self.back_end, None, self.kind),
            any(self.back_end, None, None),
            any(None, None, None),
        ]
    }
}

/// Computes the bound of 90 % of further errors: of `n` sorted errors, the error at rank ⌈0.9 (n + 1)⌉. With fewer than
/// nine errors, the largest error times (1 + 2 / n).
pub fn band_of(errors: &[f64]) -> f64 {
    let mut sizes: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let n = sizes.len();
    let rank = (0.9 * (n + 1) as f64).ceil() as usize;
    let error = match (sizes.get(rank.wrapping_sub(1)), sizes.last()) {
        (Some(e), _) => *e,
        (None, Some(worst)) => worst * (1.0 + 2.0 / n as f64),
        (None, None) => 0.0,
    };
    error.max(LEAST)
}

impl BandTable {
    /// Groups errors by kind.
    pub fn new(seen: &[ObservedError]) -> BandTable {
        let mut groups: BTreeMap<CellKey, Vec<&ObservedError>> = BTreeMap::new();
        for s in seen {
            let mut known = Vec::new();
            for key in s.key.wider() {
                if !known.contains(&key) {
                    groups.entry(key).or_default().push(s);
                    known.push(key);
                }
            }
        }
        let cell = |(key, group): (CellKey, Vec<&ObservedError>)| {
            let errors: Vec<f64> = group.iter().map(|s| s.error).collect();
            let mut sources: Vec<&str> = group.iter().map(|s| s.source.as_str()).collect();
            sources.sort_unstable();
            sources.dedup();
            let cell = Cell {
                key,
                rows: group.len(),
                sources: sources.len(),
                worst: errors.iter().map(|e| e.abs()).fold(0.0, f64::max),
                band: band_of(&errors),
            };
            (key, cell)
        };
        BandTable {
            cells: groups.into_iter().map(cell).collect(),
        }
    }

    /// Returns the cells.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.cells.values()
    }

    fn rows(&self, key: CellKey) -> usize {
        self.cells.get(&key).map_or(0, |c| c.rows)
    }

    fn cell(&self, key: CellKey) -> Option<&Cell> {
        self.cells.get(&key).filter(|c| c.rows >= LEAST_ROWS)
    }

    /// Returns the band of a kind without `None` fields.
    pub fn band(&self, key: CellKey) -> Band {
        let [own, of_class, of_kind, of_back_end, of_way] = key.wider();
        if let Some(cell) = self.cell(own) {
            return Band {
                error: cell.band,
                rows: cell.rows,
                not_calibrated_for: Vec::new(),
            };
        }
        if let (Some(class), Some(kind)) = (self.cell(of_class), self.cell(of_kind)) {
            return Band {
                error: class.band.max(kind.band),
                rows: class.rows.min(kind.rows),
                not_calibrated_for: Vec::new(),
            };
        }
        let wide =
            [of_class, of_kind, of_back_end, of_way].map(|k| self.cell(k).map_or(0.0, |c| c.band));
        Band {
            error: wide.into_iter().fold(GUESS, f64::max),
            rows: self.rows(own),
            not_calibrated_for: self.lacking_kinds(key),
        }
    }

    fn lacking_kinds(&self, key: CellKey) -> Vec<String> {
        let [_, of_class, of_kind, of_back_end, _] = key.wider();
        let back_end = key.back_end.map_or("", Backend::name);
        let way = key.way.words();
        let engine = if key.ik { "ik_llama.cpp with " } else { "" };
        let mut out = Vec::new();
        if self.cell(of_class).is_none() {
            let class = key.class.map_or("any device", CardClass::words);
            let named = !back_end.is_empty()
                && key.back_end != Some(Backend::Cpu)
                && key.class != Some(CardClass::Unknown);
            out.push(match named {
                true => format!("{engine}{back_end} on {class} {way}"),
                false => format!("{engine}{class} {way}"),
            });
        }
        if self.cell(of_kind).is_none() && self.cell(of_back_end).is_some() {
            let kind = key.kind.map_or("any model", ModelKind::words);
            out.push(format!("{kind} with {engine}{back_end} {way}"));
        }
        out
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "Bands", deny_unknown_fields)]
struct File {
    cells: Vec<Cell>,
}

/// Returns the table of this repository, written by `fit-cost`.
pub fn table() -> &'static BandTable {
    static TABLE: LazyLock<BandTable> = LazyLock::new(|| {
        BandTable::from_ron(include_str!("bands.ron")).expect("invariant: a test reads it")
    });
    &TABLE
}

impl BandTable {
    /// Parses a table.
    ///
    /// # Errors
    /// Returns an error if the text is not a table.
    pub fn from_ron(text: &str) -> Result<BandTable, ron::error::SpannedError> {
        let options = ron::Options::default()
            .with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME);
        let file: File = options.from_str(text)?;
        Ok(BandTable {
            cells: file.cells.into_iter().map(|c| (c.key, c)).collect(),
        })
    }

    /// Formats the table, one cell per line.
    pub fn to_ron(&self) -> String {
        let mut out = "// Written by `fit-cost --bands`: the errors of estimates on rows that the constants were not fitted on.\n\
                       Bands(cells: [\n"
            .to_owned();
        for c in self.cells() {
            let k = &c.key;
            let mut key = format!("ik: {}, way: {:?}", k.ik, k.way);
            let part = |name: &str, value: Option<String>| {
                value.map_or_else(String::new, |v| format!(", {name}: {v}"))
            };
            key += &part("back_end", k.back_end.map(|b| format!("{b:?}")));
            key += &part("class", k.class.map(|c| format!("{c:?}")));
            key += &part("kind", k.kind.map(|k| format!("{k:?}")));
            out += &format!(
                "    (key: ({key}), rows: {}, sources: {}, worst: {:.3}, band: {:.3}),\n",
                c.rows, c.sources, c.worst, c.band
            );
        }
        out + "])\n"
    }

    /// Returns the band of an estimate: from the machine's own calibration if it has one, or else the widest band of
    /// the device classes. A class has its usual back end unless the user names another.
    pub fn of_estimate(
        &self,
        e: &Estimate,
        topology: &Topology,
        devices: usize,
        back_end: Option<Backend>,
    ) -> Band {
        if let Some(c) = topology
            .calibration_for(e.engine)
            .filter(|c| c.ways.contains(e.way))
        {
            return Band {
                error: c.residual,
                rows: c.rows as usize,
                not_calibrated_for: Vec::new(),
            };
        }
        let mut classes: Vec<CardClass> = (0..devices.max(1))
            .map(|d| topology.device(d).class)
            .collect();
        classes.sort_unstable();
        classes.dedup();
        let bands = classes.into_iter().map(|class| {
            self.band(CellKey {
                ik: e.engine == Engine::IkLlamaCpp,
                way: e.way,
                back_end: Some(back_end.unwrap_or(class.usual_back_end())),
                class: Some(class),
                kind: Some(e.kind),
            })
        });
        let widest = bands.reduce(|a, b| {
            let mut lacking = a.not_calibrated_for;
            lacking.extend(b.not_calibrated_for);
            lacking.dedup();
            Band {
                error: a.error.max(b.error),
                rows: a.rows.min(b.rows),
                not_calibrated_for: lacking,
            }
        });
        widest.unwrap_or(Band {
            error: GUESS,
            rows: 0,
            not_calibrated_for: Vec::new(),
        })
    }
}
