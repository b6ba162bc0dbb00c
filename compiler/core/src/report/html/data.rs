//! The data of the page. Frequent keys are short.

use std::collections::BTreeMap;

use serde::Serialize;
use tpc_ir::{Bindings, DType, RANK, Symbol};

use super::names::Name;
use super::numbering::number_of;
use super::steps::{Step, Stretch, steps};
use super::tables::{PlaceData, Tables};
use crate::pipeline::CompiledModel;
use crate::report::kinds::insts_by_layer;
use crate::report::plan::{PlanReport, TensorReport};
use crate::report::why;

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Tensor {
    #[serde(rename = "n")]
    name: Name,
    #[serde(rename = "t")]
    dtype: &'static str,
    #[serde(rename = "d")]
    ne: [u64; RANK],
    #[serde(rename = "p")]
    place: usize,
    #[serde(rename = "a", skip_serializing_if = "Option::is_none")]
    axis: Option<usize>,
    #[serde(rename = "r", skip_serializing_if = "Option::is_none")]
    ranges: Option<usize>,
    /// Bytes per device of the tensor's place.
    #[serde(rename = "b")]
    bytes: Vec<u64>,
    /// True for caches and other states.
    #[serde(rename = "s", skip_serializing_if = "std::ops::Not::not")]
    state: bool,
}

impl Tensor {
    fn new(t: &TensorReport, tables: &mut Tables) -> Tensor {
        let mut bytes = t.bytes.clone();
        if bytes.iter().all(|b| *b == bytes[0]) {
            bytes.truncate(1);
        }
        Tensor {
            name: Name::new(&t.name, t.layer),
            dtype: t.dtype,
            ne: t.ne,
            place: number_of(
                &mut tables.places,
                PlaceData {
                    name: t.place.clone(),
                    devices: t.devices.clone(),
                },
            ),
            axis: t.sharding.axis,
            ranges: tables.ranges.number(&t.sharding.ranges),
            bytes,
            state: t.kind == "state",
        }
    }
}

#[derive(Debug, Serialize)]
struct Layer {
    #[serde(rename = "l")]
    layer: Option<u32>,
    #[serde(rename = "k")]
    kind: usize,
}

#[derive(Debug, Serialize)]
struct Batch {
    tokens: u64,
    cells: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct PageData {
    /// The object of `--format json`, without `tensors` and `why`.
    report: serde_json::Value,
    why: String,
    places: Vec<PlaceData>,
    /// Elements per block of types with blocks.
    blocks: BTreeMap<&'static str, u64>,
    kinds: Vec<Vec<Tensor>>,
    layers: Vec<Layer>,
    flows: Vec<Vec<Step>>,
    stretches: Vec<Stretch>,
    ranges: Vec<Vec<Vec<Vec<u64>>>>,
    /// A batch of one token, and a prompt batch.
    batches: [Batch; 2],
}

impl PageData {
    pub(super) fn new(
        report: &PlanReport,
        compiled: &CompiledModel,
    ) -> Result<PageData, serde_json::Error> {
        let mut tables = Tables::default();
        let mut kinds = Vec::new();
        let tensors = report.tensors.iter();
        let tensors = tensors.map(|t| (t.layer, Tensor::new(t, &mut tables)));
        let layers = insts_by_layer(tensors)
            .into_iter()
            .map(|(layer, tensors)| Layer {
                layer,
                kind: number_of(&mut kinds, tensors),
            })
            .collect();
        let (flows, stretches) = steps(compiled, &mut tables);
        let mut all = serde_json::to_value(report)?;
        if let Some(keys) = all.as_object_mut() {
            keys.remove("tensors");
            keys.remove("why");
        }
        let batch = |b: &Bindings| Batch {
            tokens: b.get(Symbol::NTokens),
            cells: b.get(Symbol::NKv),
        };
        let workload = &compiled.request.workload;
        Ok(PageData {
            report: all,
            why: why::render(&report.why, super::TEXT_WIDTH),
            places: tables.places,
            blocks: (DType::ALL.iter().chain(DType::IK))
                .filter(|t| t.block_len() > 1)
                .map(|t| (t.name(), t.block_len()))
                .collect(),
            kinds,
            layers,
            flows,
            stretches,
            ranges: tables.ranges.into_all(),
            batches: [batch(&workload.decode), batch(&workload.prefill)],
        })
    }
}
