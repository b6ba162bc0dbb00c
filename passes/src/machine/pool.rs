use super::Topology;

/// Memory shared by the host and devices of its machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// The devices' positions.
    pub devices: Vec<usize>,
    /// Bytes that plans may use, for the host and the devices together.
    pub usable: f64,
    /// Total bytes.
    pub memory: f64,
    /// Bytes reserved for the system and the drivers.
    pub reserve: f64,
}

impl Topology {
    /// Returns the bytes that a device shares with its host; `None` for a device with its own memory.
    pub fn pool_of(&self, device: usize) -> Option<f64> {
        self.device(device).pool
    }

    /// True if a device is not in the host's machine.
    pub fn is_remote(&self, device: usize) -> bool {
        self.machines.of_device(device) != 0
    }

    /// Returns the memory pool of the host and those of the first `devices` that share its memory, if any.
    ///
    /// If the user states the host's memory, the pool has that size.
    pub fn host_pool(&self, devices: usize) -> Option<Pool> {
        let sharing: Vec<usize> = (0..devices)
            .filter(|&d| !self.is_remote(d) && self.pool_of(d).is_some())
            .collect();
        let largest = sharing.iter().filter_map(|&d| self.pool_of(d));
        let largest = largest.reduce(f64::max)?;
        let memory = self.host.memory.unwrap_or(largest);
        let reserves = sharing.iter().map(|&d| self.device(d).reserve);
        let reserve = reserves.fold(self.host.reserve, f64::max);
        let beside: f64 = sharing.iter().map(|&d| self.device(d).beside).sum();
        Some(Pool {
            usable: (memory - reserve - beside - self.host.beside).max(0.0),
            memory,
            reserve,
            devices: sharing,
        })
    }

    /// True if all of the first `devices` in the host's machine share the host's memory. Moving weights and caches to
    /// the host then frees no memory.
    pub fn host_is_shared(&self, devices: usize) -> bool {
        let mut here = (0..devices).filter(|&d| !self.is_remote(d));
        self.host_pool(devices).is_some() && here.all(|d| self.pool_of(d).is_some())
    }

    /// Returns the host bytes that plans may use; the pool's usable bytes if memory is shared.
    pub fn usable_host_memory(&self, devices: usize) -> Option<f64> {
        match self.host_pool(devices) {
            Some(pool) => Some(pool.usable),
            None => self.host.usable_memory(),
        }
    }

    /// True if the bytes on each device and on the host fit into the known memories.
    pub fn has_room(&self, devices: &[u64], host: u64) -> bool {
        let one = |bytes: u64, room: Option<f64>| room.is_none_or(|r| bytes as f64 <= r);
        let each = devices
            .iter()
            .enumerate()
            .all(|(d, &bytes)| one(bytes, self.device(d).usable_memory()));
        let together = match self.host_pool(devices.len()) {
            None => one(host, self.host.usable_memory()),
            Some(pool) => {
                let shared = pool.devices.iter().map(|&d| devices[d]);
                one(shared.fold(host, u64::saturating_add), Some(pool.usable))
            }
        };
        each && together
    }

    /// True if the memory of the host or of one of the first `devices` is known.
    pub fn knows_memory(&self, devices: usize) -> bool {
        let device = |d| self.device(d).memory.is_some();
        self.host.memory.is_some() || (0..devices).any(device)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DeviceProfile, Link, Machines};
    use super::*;

    const GB: f64 = 1e9;

    fn profile(memory: f64, pool: Option<f64>) -> DeviceProfile {
        DeviceProfile {
            memory: Some(memory * GB),
            pool: pool.map(|p| p * GB),
            ..Topology::default().devices[0].clone()
        }
    }

    fn machine(devices: Vec<DeviceProfile>) -> Topology {
        Topology {
            devices,
            ..Topology::default()
        }
    }

    #[test]
    fn a_pool_holds_the_device_and_the_host_together() {
        let m = machine(vec![profile(96.0, Some(119.0))]);
        let fits = |device: f64, host: f64| m.has_room(&[(device * GB) as u64], (host * GB) as u64);
        assert!(fits(96.0, 23.0) && fits(0.0, 119.0));
        assert!(!fits(97.0, 0.0), "the device's own limit");
        assert!(!fits(96.0, 24.0) && !fits(1.0, 119.0), "both together");
        assert!(m.host_is_shared(1));
        assert_eq!(m.usable_host_memory(1), Some(119.0 * GB));
    }

    #[test]
    fn a_stated_host_is_the_whole_pool() {
        let mut m = machine(vec![profile(90.0, Some(119.0))]);
        m.host.memory = Some(100.0 * GB);
        assert_eq!(m.host_pool(1).map(|p| p.usable), Some(100.0 * GB));
        m.devices[0].reserve = 2.0 * GB;
        m.devices[0].beside = 3.0 * GB;
        assert_eq!(m.host_pool(1).map(|p| p.usable), Some(95.0 * GB));
        assert_eq!(m.device(0).usable_memory(), Some(85.0 * GB));
    }

    #[test]
    fn devices_of_other_machines_share_nothing_with_the_host() {
        let mut m = machine(vec![
            profile(100.0, Some(100.0)),
            profile(100.0, Some(100.0)),
        ]);
        m.machines = Machines::new(vec![1, 0], Link::network());
        assert_eq!(m.host_pool(2).map(|p| p.devices), Some(vec![1]));
        let gb = |n: u64| n * GB as u64;
        assert!(m.has_room(&[gb(100), gb(60)], gb(40)));
        assert!(!m.has_room(&[gb(60), gb(100)], gb(40)));
        m.machines = Machines::new(vec![1, 2], Link::network());
        assert!(!m.host_is_shared(2) && m.host_pool(2).is_none());
    }

    #[test]
    fn a_card_beside_an_apu_moves_its_bytes_to_the_host() {
        let m = machine(vec![profile(24.0, None), profile(100.0, Some(100.0))]);
        assert!(!m.host_is_shared(2) && m.host_is_shared(0) == m.host_pool(0).is_some());
        assert!(m.has_room(&[24 * GB as u64, 0], 100 * GB as u64));
        assert!(!machine(vec![profile(24.0, None)]).host_is_shared(1));
    }
}
