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
    /// Its memory and speed, under its own name or its card's.
    pub profile: DeviceProfile,
    /// The card that it is, if the file names one.
    pub card: Option<Card>,
    /// True if the file states its reserve.
    pub reserve_stated: bool,
}
