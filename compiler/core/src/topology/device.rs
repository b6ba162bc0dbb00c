//! A device of a topology file.

use tpc_passes::machine::DeviceProfile;

use crate::cards::Card;

/// Maximum devices of a file.
pub const MAX_ENTRIES: usize = 64;

/// A device of a topology file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileDevice {
    /// The name.
    pub name: String,
    /// Memory and speed, under its own name or its card's.
    pub profile: DeviceProfile,
    /// The card, if the file names one.
    pub card: Option<Card>,
    /// True if the file states its reserve.
    pub reserve_stated: bool,
}
