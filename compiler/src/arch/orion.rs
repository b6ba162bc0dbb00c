//! Orion.

use tpc_ir::op::NormKind;

use super::description::{Arch, NormForm, Presence};

/// `orion`: layer norms.
pub(super) const ORION: Arch = Arch {
    name: "orion",
    norm: NormForm {
        kind: NormKind::Layer,
        bias: Presence::Required,
    },
    ..Arch::CLASSIC
};
