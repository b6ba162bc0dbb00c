use tpc_passes::machine::DeviceProfile;

use crate::cards::Card;

/// Maximum number of devices in a file.
pub const MAX_ENTRIES: usize = 64;

/// A device of a topology file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileDevice {
    /// The name.
    pub name: String,
    /// Memory and speed, under the device's name.
    pub profile: DeviceProfile,
    /// The card that the file names, if any.
    pub card: Option<Card>,
    /// True if the file states the reserve.
    pub reserve_stated: bool,
}
