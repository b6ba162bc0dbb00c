//! Finds what each place does in a launch of several ops.

use tpc_ir::program::{Program, StoredFormat};
use tpc_ir::{Launch, Place, Value};

use super::fuse::{Role, roles_of};

/// What each place does of a launch of several ops; `None` where it is of one.
pub(super) fn roles(program: &Program, launch: Launch) -> Option<Vec<(Place, Role)>> {
    let insts = program.launch(launch).covers();
    let format = |v: Value| format_of(program, v);
    let kept = |v: Value| program.home(v).is_some();
    let several = insts.len() > 1;
    several.then(|| roles_of(&program.graph, insts, &format, &kept))?
}

/// How a value is stored.
pub(super) fn format_of(program: &Program, value: Value) -> StoredFormat {
    let home = program.home(value);
    home.map_or(StoredFormat::File, |h| program.buffer(h.buffer).format)
}
