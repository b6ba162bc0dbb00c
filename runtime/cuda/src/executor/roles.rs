use tpc_ir::program::{Program, StorageFormat};
use tpc_ir::{Launch, Place, Value};

use super::fuse::{Role, roles_of};

/// Returns the role of each place in a fused launch; `None` for a launch of one op.
pub(super) fn roles(program: &Program, launch: Launch) -> Option<Vec<(Place, Role)>> {
    let insts = program.launch(launch).covered_insts();
    let format = |v: Value| format_of(program, v);
    let kept = |v: Value| program.home(v).is_some();
    let several = insts.len() > 1;
    several.then(|| roles_of(&program.graph, insts, &format, &kept))?
}

pub(super) fn format_of(program: &Program, value: Value) -> StorageFormat {
    let home = program.home(value);
    home.map_or(StorageFormat::FILE, |h| program.buffer(h.buffer).format)
}
