use tpc_ir::DType;

use super::forms::{Form, WeightForms};
use super::request::{ExpectedTensor, Request, TensorSource};
use crate::description::Presence;
use crate::error::ArchError;

/// A source with every required tensor and some optional ones, which lists the requests.
pub(crate) struct Recorder<'a> {
    forms: WeightForms,
    keep: &'a dyn Fn(&ExpectedTensor) -> bool,
    tensors: Vec<ExpectedTensor>,
}

impl<'a> Recorder<'a> {
    /// Returns a recorder for weights in these forms, with the optional tensors that `keep` accepts.
    pub(crate) fn new(
        forms: WeightForms,
        keep: &'a dyn Fn(&ExpectedTensor) -> bool,
    ) -> Recorder<'a> {
        Recorder {
            forms,
            keep,
            tensors: Vec::new(),
        }
    }

    /// Returns the listed tensors, in request order.
    pub(crate) fn into_tensors(self) -> Vec<ExpectedTensor> {
        self.tensors
    }
}

impl TensorSource for Recorder<'_> {
    fn find(&mut self, request: Request<'_>) -> Result<Option<DType>, ArchError> {
        let tensor = request.tensor;
        let kept = match tensor.presence {
            Presence::Absent => false,
            Presence::Optional => (self.keep)(&tensor),
            Presence::Required => true,
        };
        if !kept {
            return Ok(None);
        }
        let dtype = match tensor.role.is_integer() {
            true => DType::I32,
            false => DType::F32,
        };
        self.tensors.push(tensor);
        Ok(Some(dtype))
    }

    fn offers(&self, name: &str, form: Form) -> bool {
        self.forms.has(name, form)
    }

    fn columns(&self, _: &str) -> Option<u64> {
        None
    }

    fn ignore(&mut self, _: &str) {}
}
