use schemars::JsonSchema;
use serde::Serialize;
use tpc_ir::Dim;
use tpc_passes::plan::Cost;

/// The reasons for the split of a tensor, and of equal tensors in other layers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
    /// Tensors of other layers that are split in the same way for the same reasons.
    pub alike: Vec<String>,
    /// Factors of each axis: a product per segment, with the major factor first.
    pub axes: Vec<String>,
    /// The factors.
    pub factors: Vec<FactorReport>,
    #[serde(skip)]
    pub(super) headline: String,
    #[serde(skip)]
    pub(super) layers: Vec<u32>,
}

/// A number, or a polynomial in the batch's sizes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FactorReport {
    /// Handle in `dump --stage factors`, such as `f7`.
    pub factor: String,
    /// The size.
    pub size: Size,
    /// Name such as `kv heads`; `None` if no weight or state has the factor.
    pub kind: Option<&'static str>,
    /// Ranges end at multiples of this number; null if quantisation blocks permit no position.
    pub granule: Option<u64>,
    /// True if ranges may end inside blocks, which two devices then hold.
    pub shares_blocks: bool,
    /// Weights and states with this factor.
    pub through: Vec<ThroughReport>,
    /// The verdict on a split of the factor.
    #[schemars(extend("enum" = ["split", "one device", "elsewhere", "forbidden", "possible", "contradiction"]))]
    pub verdict: &'static str,
    /// The class that splits it.
    pub class: Option<String>,
    /// Indices per device. For a whole factor, these are the indices of the alternative.
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
    /// Cost of the plan in the layers that the alternative would change.
    pub chosen: Option<CostReport>,
    /// Cost of the alternative in these layers: a whole factor split, or a split factor whole.
    pub alternative: Option<CostReport>,
    #[serde(skip)]
    pub(super) text: String,
}

/// A factor's position in a tensor.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ThroughReport {
    /// The tensor.
    pub tensor: String,
    /// The axis.
    pub axis: usize,
    /// Position among the factors of the axis, from 0, major first.
    pub position: usize,
    /// Number of factors of the axis.
    pub factors: usize,
    /// Segment, from 0; null for all segments.
    pub segment: Option<usize>,
    #[serde(skip)]
    pub(super) text: String,
}

/// Times and bytes of a choice.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CostReport {
    /// Time per token in µs.
    pub decode_us: f64,
    /// Time per prompt batch in µs.
    pub prefill_us: f64,
    /// The price that the search compares, in µs per token.
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
