use tpc_ir::{Device, Place};

/// The rank of each device. Rank 0 also has the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    of_device: Vec<usize>,
    count: usize,
}

impl Ranks {
    /// Returns the ranks of devices, in order. Ranks without devices are allowed.
    pub fn new(of_device: Vec<usize>, count: usize) -> Option<Ranks> {
        let fits = count > 0 && of_device.iter().all(|&rank| rank < count);
        fits.then_some(Ranks { of_device, count })
    }

    /// Divides `devices` devices evenly among `count` ranks, in order.
    pub fn even(devices: usize, count: usize) -> Ranks {
        let count = count.max(1);
        Ranks {
            of_device: (0..devices).map(|d| d * count / devices).collect(),
            count,
        }
    }

    /// Returns the number of ranks.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Returns the rank of each device.
    pub fn of_devices(&self) -> &[usize] {
        &self.of_device
    }

    /// Returns the rank of a device. Unknown devices are on rank 0.
    pub fn of_device(&self, device: Device) -> usize {
        self.of_device.get(device.index()).copied().unwrap_or(0)
    }

    /// Returns the rank of a place.
    pub fn of_place(&self, place: Place) -> usize {
        match place {
            Place::Device(device) => self.of_device(device),
            Place::Host | Place::Group(_) => 0,
        }
    }
}
