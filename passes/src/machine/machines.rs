use serde::Serialize;

use super::Link;

/// The machine of each device, and the network between machines. Machine 0 has the host of the plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machines {
    /// The machine of each device; devices beyond the list are in machine 0.
    of: Vec<usize>,
    /// The network between two machines without a stated link.
    network: Link,
}

impl Default for Machines {
    /// Returns one machine.
    fn default() -> Machines {
        Machines::new(Vec::new(), Link::network())
    }
}

impl Machines {
    /// Creates machines from the machine of each device, and the network between any two machines.
    pub fn new(of: Vec<usize>, network: Link) -> Machines {
        let mut out = Machines { of, network };
        // One machine has one form, so that equal topologies compare as equal.
        if out.of.iter().all(|&m| m == 0) {
            out.of.clear();
        }
        out
    }

    /// True if all devices are in the host's machine.
    pub fn is_one(&self) -> bool {
        self.of.is_empty()
    }

    /// Returns the machine of a device.
    pub fn of_device(&self, device: usize) -> usize {
        self.of.get(device).copied().unwrap_or(0)
    }

    /// Returns the number of machines that have one of the first `devices`, or the host.
    pub fn count(&self, devices: usize) -> usize {
        let of = self.of.iter().take(devices);
        of.max().map_or(1, |last| last + 1)
    }

    /// Returns the network between two machines.
    pub const fn network(&self) -> Link {
        self.network
    }

    /// Returns the same machines with another network.
    #[must_use]
    pub fn with_network(&self, network: Link) -> Machines {
        Machines {
            network,
            ..self.clone()
        }
    }

    /// Puts a device into a machine of its own.
    pub fn put_apart(&mut self, device: usize) {
        let own = self.of.iter().max().map_or(1, |last| last + 1);
        if self.of.len() <= device {
            self.of.resize(device + 1, 0);
        }
        self.of[device] = own;
    }

    /// Returns these devices by machine, in order of machines. Omits machines without devices.
    pub fn group(&self, devices: &[usize]) -> Vec<Vec<usize>> {
        let mut out: Vec<(usize, Vec<usize>)> = Vec::new();
        for &d in devices {
            let machine = self.of_device(d);
            match out.iter_mut().find(|(m, _)| *m == machine) {
                Some((_, own)) => own.push(d),
                None => out.push((machine, vec![d])),
            }
        }
        out.sort_by_key(|(m, _)| *m);
        out.into_iter().map(|(_, own)| own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_grouped_by_machine() {
        let m = Machines::new(vec![0, 0, 1, 1, 2], Link::network());
        assert_eq!((m.count(5), m.count(2), m.count(0)), (3, 1, 1));
        assert_eq!(m.group(&[4, 0, 3, 2]), [vec![0], vec![3, 2], vec![4]]);
        assert_eq!((m.of_device(3), m.of_device(9)), (1, 0));
        assert_eq!(
            Machines::new(vec![0, 0], Link::network()),
            Machines::default()
        );
        let mut m = Machines::default();
        m.put_apart(1);
        m.put_apart(3);
        assert_eq!((m.group(&[0, 1, 2, 3]).len(), m.count(4)), (3, 3));
    }
}
