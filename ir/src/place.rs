//! Places: the host, a device, or a group of devices.

use std::fmt;

use crate::entity::{Device, Group};

/// The place of a value and of the op that defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The machine with the devices.
    Host,
    /// One device.
    Device(Device),
    /// A group of devices; the value's sharding divides it among them.
    Group(Group),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Host => f.write_str("host"),
            Place::Device(d) => d.fmt(f),
            Place::Group(g) => g.fmt(f),
        }
    }
}

/// A device as a graph declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceData {
    /// The user's name (`cuda:0`).
    pub name: String,
}

/// A group as a graph declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupData {
    /// The devices, in order of their ranks in collectives and in [`ClassData::ranges`](crate::ClassData).
    pub devices: Vec<Device>,
}
