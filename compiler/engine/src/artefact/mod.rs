//! Manifests and checks of artefacts.
//!
//! - `manifest` builds a manifest;
//! - `bits` states if results keep the bits of one device;
//! - `fit` compares an artefact with this tpc, the model and the devices;
//! - `machine` compares an artefact with the machine's memory, cards and topology.

mod bits;
mod fit;
mod machine;
mod manifest;

pub use bits::{bits_of, company_of, promise};
pub use fit::{
    CPU, CUDA, Mismatch, STORAGE_FORMATS, TargetDevices, command, mismatches, of_model, on_devices,
    stored_versions,
};
pub use machine::{in_memory, of_topology, without_cards};
pub use manifest::{Content, manifest};
