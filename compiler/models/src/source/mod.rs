//! Sources of tensors: a file, or a recorder that lists the requests. The lowering treats both in the same way, so
//! [`expected_tensors`](super::expected_tensors) lists exactly the tensors that [`lower`](super::lower) requests.

mod file;
mod forms;
mod recorder;
mod request;

pub(crate) use file::FileTensors;
pub(crate) use forms::Form;
pub use forms::WeightForms;
pub(crate) use recorder::Recorder;
pub use request::{ExpectedTensor, TensorRole};
pub(crate) use request::{Request, TensorSource};
