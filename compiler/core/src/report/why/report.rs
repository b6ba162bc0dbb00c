//! The report's key `why`.

use serde::Serialize;
use tpc_ir::Dim;
use tpc_passes::plan::Cost;

/// The reasons for the split of a tensor, and of equal tensors in other layers.
#[derive(Clone, Debug, Serialize)]
pub struct WhyReport {
    /// Name.
    pub tensor: String,
    /// The handle in the placed graph: `v12`.
    pub value: String,
    /// Element type.
    pub dtype: &'static str,
    /// Sizes, axis 0 first: numbers, or polynomials that depend on the batch.
    pub ne: Vec<Size>,
    /// The layer.
    pub layer: Option<u32>,
    /// The place.
    pub place: String,
    /// Tensors of other layers with the same split for the same reasons.
    pub alike: Vec<String>,
    /// Factors of each axis: a product per segment, the major factor first.
    pub axes: Vec<String>,
    /// The factors.
    pub factors: Vec<FactorReport>,
    #[serde(skip)]
    pub(super) headline: String,
    #[serde(skip)]
    pub(super) layers: Vec<u32>,
}

/// A number, or a polynomial in the batch's sizes.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Size {
    /// A number.
    Number(u64),
    /// A polynomial.
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
    /// The handle: `f7` in `dump --stage factors`.
    pub factor: String,
    /// The size.
    pub size: Size,
    /// A name such as `kv heads`; `None` if the factor is in no weight or state.
    pub kind: Option<&'static str>,
    /// Ranges end at multiples of this; null if quantisation blocks permit no position.
    pub granule: Option<u64>,
    /// True if ranges may end inside blocks, which devices then share.
    pub shares_blocks: bool,
    /// Weights and states that it runs through.
    pub through: Vec<ThroughReport>,
    /// `split`, `one device`, `elsewhere`, `forbidden`, `possible` or `contradiction`.
    pub verdict: &'static str,
    /// The class that splits it.
    pub class: Option<String>,
    /// Indices per device; for a whole factor, the indices of the alternative.
    pub ranges: Vec<[u64; 2]>,
    /// The reason that forbids a split.
    pub reason: Option<String>,
    /// The forbidding op.
    pub op: Option<&'static str>,
    /// The op's first result.
    pub op_result: Option<String>,
    /// The op's layer.
    pub op_layer: Option<u32>,
    /// Classes that the alternative excludes.
    pub instead_of: Vec<String>,
    /// The choice's cost in the layers that the alternative would change.
    pub chosen: Option<CostReport>,
    /// The alternative's cost in these layers: splitting a whole factor, or leaving a split one whole.
    pub alternative: Option<CostReport>,
    #[serde(skip)]
    pub(super) text: String,
}

/// A factor's position in a tensor.
#[derive(Clone, Debug, Serialize)]
pub struct ThroughReport {
    /// The tensor.
    pub tensor: String,
    /// The axis.
    pub axis: usize,
    /// The position among the axis's factors, from 0, major first.
    pub position: usize,
    /// Number of factors of the axis.
    pub factors: usize,
    /// The segment, from 0; null for all.
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
    /// The compared price, in µs per token.
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
