//! # The intermediate representation of tpc
//!
//! A [`Graph`] is a program in SSA form. Each [`Inst`] applies one [`Op`] of a closed set to values and defines
//! values. A value has a [`TensorType`] (an element type and four possibly symbolic sizes). It also has a [`Place`]
//! (the host, a device, or a group) and a [`Sharding`] (the division among a group's devices).
//!
//! The same representation serves every stage:
//!
//! 1. *model*: the whole model on one place, as an architecture describes it;
//! 2. *sharded*: values on groups, with shardings, copies and collectives explicit, and global sizes;
//! 3. *programs*: values on single devices, with local sizes. Collectives have one operand and result per device.
//!
//! Each op states its sharding rule ([`op::Rule`]) once, next to its definition. The algebra of factor trees
//! ([`factor`]) derives inference, verification, lowering and the documentation from the rules.
//!
//! The crate does not depend on files or device interfaces.

pub mod budget;
pub mod cells;
pub mod code;
pub mod dims;
pub mod dtype;
pub mod entity;
pub mod factor;
pub mod graph;
pub mod interval;
pub mod op;
pub mod place;
pub mod program;
pub mod random;
pub mod resize;
pub mod sharding;
pub mod text;
pub mod types;
pub mod verify;
pub mod window;

pub use budget::{Budget, BudgetExceeded, OpLocation, Resource};
pub use cells::{CELL_BLOCK, CellParts, cache_cells};
pub use code::{Code, Severity};
pub use dims::{Bindings, Dim, Symbol};
pub use dtype::DType;
pub use entity::{Arena, Buffer, Class, Device, Group, Inst, Launch, Value};
pub use graph::{CellUnit, Graph, InstData, MAX_LAYER, Output, ValueData};
pub use interval::Interval;
pub use op::Op;
pub use place::{DeviceData, GroupData, Place};
pub use program::Program;
pub use sharding::{AxisTree, ClassData, ClassRef, Sharding, Unreduced};
pub use types::{RANK, TensorType};
pub use verify::{Verified, stage};
pub use window::Window;
