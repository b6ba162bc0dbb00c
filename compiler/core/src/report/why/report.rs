//! The explanations as data: the key `why` of the report.

use serde::Serialize;
use tpc_ir::Dim;
use tpc_passes::plan::Cost;

/// Why a tensor, and those like it in other layers, are split as they are.
#[derive(Clone, Debug, Serialize)]
pub struct WhyReport {
    /// Name.
    pub tensor: String,
    /// Its number, as `dump --stage placed` prints it.
    pub value: String,
    /// Element type.
    pub dtype: &'static str,
    /// Sizes, axis 0 first: numbers, or text where they are those of a batch.
    pub ne: Vec<Size>,
    /// The layer it belongs to.
    pub layer: Option<u32>,
    /// Where it lives.
    pub place: String,
    /// Tensors of other layers of which the same holds.
    pub alike: Vec<String>,
    /// Per axis its factors, major first, as text: a product per segment.
    pub axes: Vec<String>,
    /// The factors.
    pub factors: Vec<FactorReport>,
    #[serde(skip)]
    pub(super) headline: String,
    #[serde(skip)]
    pub(super) layers: Vec<u32>,
}

/// A size: a number, or a polynomial in the sizes of a batch.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Size {
    /// A number.
    Number(u64),
    /// A polynomial as text.
    Symbolic(String),
}

impl From<&Dim> for Size {
    fn from(d: &Dim) -> Size {
        d.as_const()
            .map_or_else(|| Size::Symbolic(d.to_string()), Size::Number)
    }
}

/// One factor of a tensor.
#[derive(Clone, Debug, Serialize)]
pub struct FactorReport {
    /// Its number, as in `dump --stage factors`.
    pub factor: String,
    /// Its size.
    pub size: Size,
    /// What it is, for people.
    pub kind: Option<&'static str>,
    /// Ranges end at multiples of this; null where quantisation blocks leave no such place.
    pub granule: Option<u64>,
    /// Whether ranges may end inside blocks, which devices then share.
    pub shares_blocks: bool,
    /// The weights and states that it runs through.
    pub through: Vec<ThroughReport>,
    /// `split`, `one device`, `elsewhere`, `forbidden`, `possible` or `contradiction`.
    pub verdict: &'static str,
    /// The class that splits it.
    pub class: Option<String>,
    /// Indices of the class per device, or those that the alternative would give.
    pub ranges: Vec<[u64; 2]>,
    /// What forbids splitting it, in words.
    pub reason: Option<String>,
    /// The op that forbids it.
    pub op: Option<&'static str>,
    /// The first result of that op.
    pub op_result: Option<String>,
    /// The layer of that op.
    pub op_layer: Option<u32>,
    /// Classes that the alternative excludes.
    pub instead_of: Vec<String>,
    /// What the choice costs where the alternative would change it.
    pub chosen: Option<CostReport>,
    /// What the alternative costs there: to split a whole factor, to leave a split one whole.
    pub alternative: Option<CostReport>,
    #[serde(skip)]
    pub(super) text: String,
}

/// A place of a factor in a tensor.
#[derive(Clone, Debug, Serialize)]
pub struct ThroughReport {
    /// The tensor.
    pub tensor: String,
    /// The axis.
    pub axis: usize,
    /// Its position among the factors of the axis, from 0, major first.
    pub position: usize,
    /// Factors of the axis.
    pub factors: usize,
    /// The segment, from 0; null where it is in all of them.
    pub segment: Option<usize>,
    #[serde(skip)]
    pub(super) text: String,
}

/// Times and bytes.
#[derive(Clone, Debug, Serialize)]
pub struct CostReport {
    /// µs per token.
    pub decode_us: f64,
    /// µs per prompt batch.
    pub prefill_us: f64,
    /// What the planner compares, in µs per token.
    pub price_us: f64,
    /// Bytes of weights and states per device.
    pub bytes: Vec<u64>,
}

impl From<&Cost> for CostReport {
    fn from(c: &Cost) -> CostReport {
        CostReport {
            decode_us: c.decode_us,
            prefill_us: c.prefill_us,
            price_us: c.price_us,
            bytes: c.bytes.iter().map(|&b| b as u64).collect(),
        }
    }
}
