use std::collections::BTreeMap;
use std::sync::Arc;

use tpc_ir::{Graph, Place, Value};

use crate::error::ExecError;
use crate::tensor::Tensor;

#[derive(Clone, Debug, Default)]
pub(crate) struct Memories(BTreeMap<Place, BTreeMap<Value, Arc<Tensor>>>);

impl Memories {
    pub(crate) fn store(&mut self, place: Place, value: Value, tensor: Arc<Tensor>) {
        self.0.entry(place).or_default().insert(value, tensor);
    }

    pub(crate) fn read(
        &self,
        graph: &Graph,
        place: Place,
        value: Value,
    ) -> Result<Arc<Tensor>, ExecError> {
        let found = self.0.get(&place).and_then(|m| m.get(&value));
        found.cloned().ok_or_else(|| ExecError::WrongPlace {
            value,
            home: graph.value(value).place,
            place,
        })
    }

    pub(crate) fn free(&mut self, graph: &Graph, value: Value) {
        if let Some(m) = self.0.get_mut(&graph.value(value).place) {
            m.remove(&value);
        }
    }
}
