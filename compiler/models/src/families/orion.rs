//! Orion.

use tpc_ir::op::NormKind;

use crate::description::{Arch, NormForm, Presence};

/// `orion`: layer norms.
pub(crate) const ORION: Arch = Arch {
    name: "orion",
    norm: NormForm {
        kind: NormKind::Layer,
        bias: Presence::Required,
    },
    ..Arch::CLASSIC
};
