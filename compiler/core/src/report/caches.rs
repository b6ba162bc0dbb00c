//! The division of KV caches among devices.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use tpc_ir::{Op, Place};

use crate::format::bytes;
use crate::pipeline::CompiledModel;

/// KV caches on all places together.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CachesReport {
    /// `cells` if devices store parts of the cells, otherwise `heads`.
    #[schemars(extend("enum" = ["heads", "cells"]))]
    pub split: &'static str,
    /// Bytes of one copy.
    pub once_bytes: u64,
    /// Bytes on all places.
    pub stored_bytes: u64,
    /// Number of states of layers that devices divide by cells.
    pub divided: usize,
}

impl CachesReport {
    /// Creates the report; `None` for a model without KV caches.
    pub(super) fn new(compiled: &CompiledModel) -> Option<CachesReport> {
        let batch = compiled.memory_batch();
        let (mut once, mut stored) = (BTreeMap::new(), 0_u64);
        let mut divided = BTreeSet::new();
        for (_, data) in compiled.sharded.insts() {
            let Op::State(state) = &data.op else { continue };
            let value = compiled.sharded.value(data.results[0]);
            if !value.ty.counts_cells() {
                continue;
            }
            once.insert(state.name.as_str(), value.ty.bytes(&batch).unwrap_or(0));
            if state.cells.is_some() {
                divided.insert(state.name.as_str());
            }
            let ranks = match value.place {
                Place::Group(g) => compiled.sharded.group(g).devices.len(),
                Place::Host | Place::Device(_) => 1,
            };
            for rank in 0..ranks {
                let classes = &compiled.sharded.classes;
                let local = value.sharding.local_type(&value.ty, classes, rank);
                let bytes = local.and_then(|t| t.bytes(&batch));
                stored = stored.saturating_add(bytes.unwrap_or(0));
            }
        }
        let once_bytes = once.values().fold(0_u64, |n, b| n.saturating_add(*b));
        (once_bytes > 0).then_some(CachesReport {
            split: match divided.is_empty() {
                true => "heads",
                false => "cells",
            },
            once_bytes,
            stored_bytes: stored,
            divided: divided.len(),
        })
    }

    /// Returns the number of copies of a mean cell.
    pub fn copies(&self) -> f64 {
        self.stored_bytes as f64 / self.once_bytes.max(1) as f64
    }

    /// Describes copies and division in one line; empty for one copy by heads.
    pub(super) fn line(&self) -> String {
        let copies = self.copies();
        let once = bytes(self.once_bytes);
        match (self.split, copies > 1.01) {
            ("cells", false) => {
                format!("kv cache: {once}, divided by cells: one copy of each cell\n")
            }
            (_, false) => String::new(),
            (_, true) => {
                let rounded = (copies * 10.0).round() / 10.0;
                format!("kv cache: {once}, and devices store {rounded} copies of it\n")
            }
        }
    }
}
