//! The compared part of a plan, read from `--format json`.

use std::fmt;

use serde::Deserialize;

use crate::report::plan::PlanReport;

const VERSION: u64 = 1;

/// The compared part of a plan.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Snapshot {
    pub(super) model: Model,
    pub(super) verdict: String,
    pub(super) split_mode: String,
    pub(super) devices: Vec<Bytes>,
    pub(super) host: Bytes,
    pub(super) tensors: Vec<Tensor>,
    pub(super) estimate: Speeds,
    pub(super) diagnostics: Vec<Finding>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Model {
    pub(super) path: String,
    pub(super) arch: String,
    pub(super) name: String,
    pub(super) n_layer: u64,
    pub(super) n_params: u64,
    pub(super) bytes: u64,
    pub(super) n_ctx: u64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Bytes {
    pub(super) name: String,
    pub(super) weights_bytes: u64,
    pub(super) kv_bytes: u64,
    pub(super) state_bytes: u64,
    pub(super) compute_bytes: u64,
    pub(super) total_bytes: u64,
    pub(super) capacity_bytes: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) dtype: String,
    pub(super) place: String,
    pub(super) sharding: Sharding,
    pub(super) layer: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Sharding {
    pub(super) kind: String,
    pub(super) axis: Option<u64>,
    #[serde(default)]
    pub(super) ranges: Ranges,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum Ranges {
    Single(Vec<[u64; 2]>),
    Segments(Vec<Vec<[u64; 2]>>),
}

impl Default for Ranges {
    fn default() -> Ranges {
        Ranges::Single(Vec::new())
    }
}

impl Ranges {
    pub(super) fn lens(&self) -> Vec<u64> {
        let sum = |all: &[[u64; 2]]| all.iter().fold(0_u64, |s, r| s.saturating_add(r[1]));
        match self {
            Ranges::Single(all) => all.iter().map(|r| r[1]).collect(),
            Ranges::Segments(all) => all.iter().map(|s| sum(s)).collect(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Speeds {
    pub(super) decode_us: f64,
    pub(super) prefill_us: f64,
    /// `None` in plans of earlier versions, which only have times.
    #[serde(default)]
    pub(super) decode_tps: Option<f64>,
    #[serde(default)]
    pub(super) prompt_tps: Option<f64>,
    #[serde(default)]
    pub(super) engine: Option<String>,
    #[serde(default)]
    pub(super) depth: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct Finding {
    pub(super) code: String,
    pub(super) entity: String,
    pub(super) message: String,
}

/// The reason why a file cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoSnapshot {
    /// The file is not JSON.
    Json(String),
    /// The file has several plans, or other values.
    Array,
    /// The file is not a plan of tpc.
    NoPlan(String),
    /// The plan has another version.
    Version(String),
    /// The file is the report of a failed plan.
    Refusal,
}

impl fmt::Display for NoSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSnapshot::Json(e) => write!(f, "the file is not JSON: {e}"),
            NoSnapshot::Array => f.write_str("the file has an array: give a single plan"),
            NoSnapshot::NoPlan(e) => write!(f, "the file is not a plan: {e}"),
            NoSnapshot::Version(v) => {
                write!(
                    f,
                    "the plan has format version {v}, but tpc reads version {VERSION}"
                )
            }
            NoSnapshot::Refusal => f.write_str("the file records a refusal, not a plan"),
        }
    }
}

impl Snapshot {
    /// Parses the output of `--format json`.
    ///
    /// # Errors
    /// Returns an error if the text is not a plan of this version.
    pub fn from_json(bytes: &[u8]) -> Result<Snapshot, NoSnapshot> {
        let text = std::str::from_utf8(bytes).map_err(|e| {
            NoSnapshot::Json(format!("byte {} is not valid UTF-8", e.valid_up_to()))
        })?;
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|e| NoSnapshot::Json(e.to_string()))?;
        Snapshot::from_value(value)
    }

    /// Returns the compared part of a report.
    ///
    /// # Errors
    /// Returns an error if the report has a number that JSON cannot represent.
    pub fn of(report: &PlanReport) -> Result<Snapshot, NoSnapshot> {
        let value = serde_json::to_value(report).map_err(|e| NoSnapshot::Json(e.to_string()))?;
        Snapshot::from_value(value)
    }

    fn from_value(value: serde_json::Value) -> Result<Snapshot, NoSnapshot> {
        if value.is_array() {
            return Err(NoSnapshot::Array);
        }
        match value.get("tpc") {
            None => {
                let why = "the field `tpc` with the version is missing";
                return Err(NoSnapshot::NoPlan(why.to_owned()));
            }
            Some(version) if version.as_u64() != Some(VERSION) => {
                return Err(NoSnapshot::Version(crate::format::shortened(
                    &version.to_string(),
                    40,
                )));
            }
            Some(_) => {}
        }
        let refused = value.get("verdict").is_some_and(|v| v == "error");
        if refused && value.get("devices").is_none() {
            return Err(NoSnapshot::Refusal);
        }
        serde_json::from_value(value).map_err(|e| NoSnapshot::NoPlan(e.to_string()))
    }
}
