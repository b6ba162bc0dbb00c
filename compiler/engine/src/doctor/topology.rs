use std::fmt::Write;

use tpc_core::cards::{CardMatch, find, table};

use super::all_reduce::SIZES;
use super::measurements::{BANDWIDTH, LATENCY};
use super::report::{Checked, Report};

/// The arithmetic of cards that the table lacks.
const ASSUMED_FLOPS: &str = "\"100 TFLOP/s\"";

fn figure(checked: &Checked, name: &str) -> Option<f64> {
    let figures = checked.finding.figures.iter();
    figures.filter(|(n, _)| *n == name).map(|(_, x)| *x).next()
}

/// The worst measurement of a link in both directions.
#[derive(Clone, Copy)]
struct Measured {
    bandwidth: f64,
    latency: f64,
}

impl Measured {
    /// Returns the slowest of the measurements that `is` selects.
    fn slowest(report: &Report, is: impl Fn(&Checked) -> bool) -> Option<Measured> {
        let of = |c: &Checked| Some((figure(c, BANDWIDTH)?, figure(c, LATENCY)?));
        let found = report.checks.iter().filter(|c| is(c)).filter_map(of);
        let worse = |m: Measured, (bandwidth, latency): (f64, f64)| Measured {
            bandwidth: m.bandwidth.min(bandwidth),
            latency: m.latency.max(latency),
        };
        let none = Measured {
            bandwidth: f64::INFINITY,
            latency: 0.0,
        };
        let slowest = found.fold(none, worse);
        slowest.bandwidth.is_finite().then_some(slowest)
    }

    /// Returns the link with which the cost model gives the measured times of the smallest and the largest all-reduce.
    /// The model's time on two devices is the latency, plus the operand's bytes at the bandwidth.
    fn with_all_reduce(self, all_reduce: &Checked) -> Option<Measured> {
        let [(small, first), .., (large, last)] = SIZES;
        let (least, most) = (figure(all_reduce, first)?, figure(all_reduce, last)?);
        let per_byte = (most - least).max(0.0) / (large - small) as f64;
        // A microsecond per kilobyte is 1 GB/s.
        let bandwidth = self.bandwidth.min(1e-3 / per_byte.max(1e-9));
        let latency = least - small as f64 / bandwidth * 1e-3;
        Some(Measured {
            bandwidth,
            latency: latency.max(self.latency),
        })
    }

    fn text(&self) -> String {
        format!(
            "(bandwidth: \"{:.3} GB/s\", latency_us: {:.2})",
            self.bandwidth.max(0.001),
            self.latency
        )
    }
}

/// Returns a topology file with the measured links; `None` if the report has no devices.
pub fn topology(report: &Report) -> Option<String> {
    if report.devices.is_empty() {
        return None;
    }
    let mut out =
        "// Written by `tpc doctor --write-topology`.\nTopology(\n    devices: [\n".to_owned();
    for (card, info) in &report.devices {
        let known = match find(&info.name, &[], table()) {
            CardMatch::Card(card) | CardMatch::Meant { card, .. } => Some(&card.name),
            CardMatch::Several(_) | CardMatch::Unknown(_) => None,
        };
        let figures = match known {
            Some(known) => format!("card: \"{known}\""),
            None => {
                let is = |c: &&Checked| c.check == "device memory" && c.cards == [*card];
                let checked = report.checks.iter().find(is);
                let rate = checked.and_then(|c| figure(c, BANDWIDTH)).unwrap_or(100.0);
                format!("bandwidth: \"{rate:.1} GB/s\", flops: {ASSUMED_FLOPS}")
            }
        };
        let memory = info.memory;
        let _ = writeln!(
            out,
            "        (name: \"cuda:{card}\", {figures}, memory: \"{memory} B\"),"
        );
    }
    out.push_str("    ],\n    links: [\n");
    for (a, (first, _)) in report.devices.iter().enumerate() {
        for (b, (second, _)) in report.devices.iter().enumerate().skip(a + 1) {
            let both = |c: &Checked| {
                c.check == "link" && c.cards.contains(first) && c.cards.contains(second)
            };
            if let Some(link) = Measured::slowest(report, both) {
                let mut sums = report.checks.iter().filter(|c| c.check == "all-reduce");
                let sum = sums.find(|c| c.cards == [*first, *second]);
                let measured = sum.and_then(|c| link.with_all_reduce(c)).unwrap_or(link);
                let _ = writeln!(out, "        (a: {a}, b: {b}, link: {}),", measured.text());
            }
        }
    }
    out.push_str("    ],\n");
    let host = |c: &Checked| ["host to device", "device to host"].contains(&c.check);
    if let Some(measured) = Measured::slowest(report, host) {
        let _ = writeln!(out, "    host_link: {},", measured.text());
    }
    out.push_str(")\n");
    Some(out)
}

#[cfg(test)]
mod tests {
    use tpc_core::topology::TopologyFile;
    use tpc_cuda::DeviceInfo;

    use super::super::report::{Finding, Section};
    use super::*;

    fn measured(check: &'static str, cards: &[u32], bandwidth: f64, latency: f64) -> Checked {
        Checked {
            section: Section::Measurements,
            check,
            cards: cards.to_vec(),
            name: check.to_owned(),
            finding: Finding::ok("")
                .with(BANDWIDTH, bandwidth)
                .with(LATENCY, latency),
        }
    }

    fn device(name: &str) -> DeviceInfo {
        DeviceInfo {
            name: name.to_owned(),
            card: 0,
            capability: (8, 6),
            multiprocessors: 82,
            memory: 24 << 30,
            shared_per_block: 99 << 10,
        }
    }

    #[test]
    fn the_file_has_the_slower_direction_of_each_link() {
        let report = Report {
            checks: vec![
                measured("link", &[2, 0], 20.0, 3.0),
                measured("link", &[0, 2], 18.5, 4.0),
                measured("host to device", &[0], 25.0, 9.0),
                measured("host to device", &[2], 24.0, 8.0),
            ],
            devices: vec![
                (0, device("NVIDIA GeForce RTX 3090")),
                (2, device("strange")),
            ],
        };
        let text = topology(&report).expect("devices");
        let file = TopologyFile::from_ron(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(file.devices.len(), 2);
        assert_eq!(file.devices[0].name, "cuda:0");
        assert!(file.devices[0].card.is_some() && file.devices[1].card.is_none());
        assert_eq!(file.devices[1].profile.memory, Some((24_u64 << 30) as f64));
        assert_eq!(file.links.len(), 1);
        let link = file.links[0].link;
        assert_eq!((link.bandwidth, link.latency_us), (18.5e9, 4.0));
        let host = file.host_link.expect("a link");
        assert_eq!((host.bandwidth, host.latency_us), (24e9, 9.0));
        assert_eq!(topology(&Report::default()), None);
    }

    #[test]
    fn an_all_reduce_gives_latency_and_bandwidth() {
        let link = Measured {
            bandwidth: 50.0,
            latency: 3.0,
        };
        let times = |least: f64, most: f64| {
            let finding = Finding::ok("")
                .with(SIZES[0].1, least)
                .with(SIZES[2].1, most);
            let checked = Checked {
                finding,
                ..measured("all-reduce", &[0, 1], 1.0, 1.0)
            };
            let found = link.with_all_reduce(&checked).expect("both times");
            (found.bandwidth.round(), found.latency.round())
        };
        // 4 MiB - 16 KiB in 418 µs are 10 GB/s; 16 KiB take 2 µs.
        assert_eq!(times(12.0, 12.0 + 417.8), (10.0, 10.0));
        // The copies limit the bandwidth and the latency.
        assert_eq!(times(2.0, 2.0), (50.0, 3.0));
        assert!(
            link.with_all_reduce(&measured("link", &[0, 1], 1.0, 1.0))
                .is_none()
        );
    }
}
