//! Host code shared by all executors: loads weights, and finds inputs, outputs and launches.

mod launches;
mod values;
mod weights;

pub use launches::{launch_label, launch_op, launch_values, max_sizes};
pub use values::{StoredExtent, extents, inputs, outputs, weight_tensor};
pub use weights::{BufferedWeight, load_weights};
