//! Memory of additional files, computed from their headers.
//!
//! - `request`: the requested files;
//! - `draft`: a draft model, from its plan, or from its header if tpc does not know the architecture;
//! - `header`: weights and caches from a header;
//! - `projector`: image and sound encoders;
//! - `adapter`: LoRA adapters and control vectors;
//! - `vocabulary`: compares the tokens of a draft model and the model.

mod adapter;
mod draft;
mod header;
mod projector;
mod request;
mod vocabulary;

pub use crate::placement::{Difference, ExtraFileMemory, Part};
pub use request::{Adapter, Draft, Projector, Request};
pub use vocabulary::differs;

use tpc_gguf::GgufFile;

use crate::placement::Placement;

/// Reads the header of a file; `None` if that fails.
pub type Open<'o> = &'o dyn Fn(&str) -> Option<GgufFile>;

/// Computes the memory of the requested files on a placement's devices. Skips unreadable files.
pub fn count(
    request: &Request,
    model: &GgufFile,
    placement: &Placement,
    open: Open<'_>,
) -> Vec<ExtraFileMemory> {
    let mut out = Vec::new();
    if let Some(asked) = &request.draft
        && let Some(file) = open(&asked.file)
    {
        out.push(ExtraFileMemory {
            difference: differs(model, &file),
            words: Request {
                draft: Some(asked.clone()),
                ..Request::default()
            }
            .words(),
            ..draft::draft(asked, &file, model, placement)
        });
    }
    if let Some(asked) = &request.projector
        && let Some(file) = open(&asked.file)
    {
        out.push(ExtraFileMemory {
            words: Request {
                projector: Some(asked.clone()),
                ..Request::default()
            }
            .words(),
            ..projector::projector(asked, &file, placement)
        });
    }
    for asked in &request.adapters {
        if let Some(file) = open(&asked.file) {
            out.push(ExtraFileMemory {
                words: Request {
                    adapters: vec![asked.clone()],
                    ..Request::default()
                }
                .words(),
                ..adapter::adapter(asked, &file, model, placement)
            });
        }
    }
    out
}

impl Placement {
    /// Subtracts the memory of these files from the devices and the host.
    #[must_use]
    pub fn with_files(mut self, beside: Vec<ExtraFileMemory>) -> Placement {
        let n = self.devices.len();
        // Devices beyond the list share the last profile. From here on each device needs its own profile.
        let profiles = (0..n).map(|d| self.topology.device(d).clone());
        self.topology.devices = profiles.collect();
        for b in &beside {
            for (profile, part) in self.topology.devices.iter_mut().zip(&b.devices) {
                profile.beside += part.total() as f64;
            }
            self.topology.host.beside += b.host.total() as f64;
        }
        self.beside = beside;
        self
    }
}
