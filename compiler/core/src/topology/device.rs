//! A device of a topology file.

use tpc_passes::machine::DeviceProfile;

use crate::cards::Card;

/// The most devices that a file may have.
pub const MAX_ENTRIES: usize = 64;

/// A device of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileDevice {
    /// Its name.
    pub name: String,
    /// Its memory and speed, under the name of its card where it has none of its own.
    pub profile: DeviceProfile,
    /// The card that it is, where the file says it.
    pub card: Option<Card>,
    /// Whether the file states its reserve.
    pub reserve_stated: bool,
}
