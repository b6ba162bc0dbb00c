use tpc_ir::program::Program;
use tpc_ir::{Place, Value};
use tpc_runtime::ExecError;

use crate::driver::Device;

/// Returns the device of a place; `None` for the host.
pub(super) fn device(place: Place) -> Result<Option<Device>, ExecError> {
    match place {
        Place::Host => Ok(None),
        Place::Device(d) => Ok(Some(Device(d.index() as u32))),
        Place::Group(_) => Err(ExecError::Malformed {
            what: "a place is a group of devices".into(),
        }),
    }
}

/// Returns the device of a value; `None` for the host.
pub(super) fn device_index(program: &Program, value: Value) -> Result<Option<usize>, ExecError> {
    Ok(device(program.graph.value(value).place)?.map(|d| d.0 as usize))
}
