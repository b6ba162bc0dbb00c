use tpc_passes::machine::{LinkKind, MemoryKind};

use super::*;

const GIB: f64 = 1_073_741_824.0;

fn read(text: &str) -> TopologyFile {
    TopologyFile::from_ron(text).unwrap_or_else(|e| panic!("{text}: {e}; {:?}", e.cure))
}

#[track_caller]
fn refused(text: &str, said: &str, cure: &str) {
    let e = TopologyFile::from_ron(text).expect_err(text);
    let cured = e.cure.clone().unwrap_or_default();
    assert_eq!(
        (e.to_string().as_str(), cured.as_str()),
        (said, cure),
        "{text}"
    );
}

fn names(t: &TopologyFile) -> Vec<&str> {
    t.devices.iter().map(|d| d.name.as_str()).collect()
}

#[test]
fn cards_by_name_with_what_differs() {
    let t = read(
        "(devices: [(card: \"3090\"), (card: \"RTX 4090\", memory: 20e9, reserve: \"2 GiB\")])",
    );
    assert_eq!(names(&t), ["3090", "4090"]);
    let [a, b] = t.devices.as_slice() else {
        panic!("{t:?}")
    };
    assert_eq!(a.profile.memory, Some(24154.0 * 1048576.0));
    assert_eq!((a.profile.reserve, a.reserve_stated), (GIB, false));
    assert_eq!(b.profile.memory, Some(20e9));
    assert_eq!((b.profile.reserve, b.reserve_stated), (2.0 * GIB, true));
    assert_eq!(b.profile.bandwidth, 1008e9);
    assert_eq!(
        a.profile.processor.map(|p| (p.units, p.memory)),
        Some((82, MemoryKind::Gddr))
    );
    assert!(t.link.is_none() && t.way.is_none());
}

#[test]
fn counts_and_names() {
    let t =
        read("Topology(devices: [(card: \"H100\", count: 3), (card: \"A100\", name: \"old\")])");
    assert_eq!(names(&t), ["H100-SXM#0", "H100-SXM#1", "H100-SXM#2", "old"]);
    assert_eq!(t.named("OLD"), Some(3));
    assert_eq!(t.named("new"), None);
}

#[test]
fn memory_in_every_spelling() {
    for (spelt, expected) in [
        ("24e9", Some(24e9)),
        ("24000000000", Some(24e9)),
        ("Some(24e9)", Some(24e9)),
        ("Some( 24e9 )", Some(24e9)),
        ("\"24 GB\"", Some(24e9)),
        ("\"24GiB\"", Some(24.0 * GIB)),
        ("Some(\"24 GiB\")", Some(24.0 * GIB)),
        ("None", None),
    ] {
        let t = read(&format!(
            "(devices: [(name: \"a\", memory: {spelt}, bandwidth: 1e12, flops: 1e14)])"
        ));
        assert_eq!(t.devices[0].profile.memory, expected, "{spelt}");
        let reserve = if expected.is_some() { GIB } else { 0.0 };
        assert_eq!(t.devices[0].profile.reserve, reserve, "{spelt}");
    }
}

#[test]
fn quantities_have_units() {
    let t = read(
        "(devices: [(name: \"a\", memory: \"24 GB\", bandwidth: \"936 GB/s\", flops: \"71 TFLOP/s\")], \
         link: (bandwidth: \"200 Gbit/s\", latency_us: 30), host: (memory: \"256 GiB\"))",
    );
    assert_eq!(
        (t.devices[0].profile.bandwidth, t.devices[0].profile.flops),
        (936e9, 71e12)
    );
    assert_eq!(t.link, Some(Link::new(25e9, 30.0)));
    assert_eq!((t.host.memory, t.host.bandwidth), (Some(256.0 * GIB), 60e9));
}

#[test]
fn cards_of_the_files_own() {
    let t = read(
        "(cards: [(name: \"3090 48G\", like: \"3090\", memory: \"48 GiB\"),
                  (name: \"X1\", memory: \"64 GB\", bandwidth: \"2 TB/s\", flops: \"400 TFLOP/s\", nvlink: \"600 GB/s\")],
          devices: [(card: \"3090-48g\"), (card: \"x1\", count: 2)])",
    );
    assert_eq!(names(&t), ["3090-48G", "X1#1", "X1#2"]);
    assert_eq!(t.devices[0].profile.memory, Some(48.0 * GIB));
    assert_eq!(t.devices[0].profile.bandwidth, 936e9);
    assert_eq!(
        t.devices[1]
            .card
            .as_ref()
            .and_then(|c| c.fabric)
            .map(super::super::cards::Fabric::bandwidth),
        Some(600e9)
    );
    let t = read(
        "(cards: [(name: \"RTX 3090\", like: \"3090\", memory: 10e9)], devices: [(card: \"3090\")])",
    );
    assert_eq!(t.devices[0].profile.memory, Some(10e9));
}

#[test]
fn links_by_name_and_by_figures() {
    let t = read("(devices: [(card: \"3090\", count: 2)], link: \"nvlink\")");
    assert_eq!((t.link, t.way), (None, Some(LinkKind::NvLink)));
    let t = read("(devices: [(card: \"3090\", count: 2)], link: Some(pcie))");
    assert_eq!(t.way, Some(LinkKind::PcieHost));
    let t = read(
        "(devices: [(card: \"3090\", name: \"x\"), (card: \"3090\", name: \"y\")], \
         links: [(a: \"x\", b: 1, link: \"nvlink\")])",
    );
    assert_eq!(t.links[0].link, Link::of(LinkKind::NvLink, 56.25e9));
    let t = read(
        "(devices: [(card: \"3090\")], link: (bandwidth: 1e10, latency_us: 5, kind: \"pcie-p2p\"))",
    );
    assert_eq!(
        t.link.map(|l| (l.kind, l.latency_us)),
        Some((LinkKind::PciePeer, 5.0))
    );
    let t = read("(devices: [(card: \"3090\")], link: (bandwidth: 1e10, kind: PcieHost))");
    assert_eq!(t.link, Some(Link::of(LinkKind::PcieHost, 1e10)));
}

#[test]
fn files_of_before_keep_their_meaning() {
    let t = read(
        "Topology(\n    devices: [(name: \"device\", memory: None, bandwidth: 1e9, flops: 2e14)],\n    \
         link: (bandwidth: 1e18, latency_us: 0.0),\n    links: [],\n    \
         host: (name: \"host\", memory: None, bandwidth: 60e9, flops: 1e12),\n    \
         host_link: (bandwidth: 25e12, latency_us: 0.0),\n)\n",
    );
    assert_eq!(t.link, Some(Link::new(1e18, 0.0)));
    assert_eq!(t.host_link, Some(Link::new(25e12, 0.0)));
    assert_eq!(t.devices[0].profile.bandwidth, 1e9);
    assert_eq!(t.host, Topology::default().host);
}

#[test]
fn values_that_make_no_sense_are_located_and_cured() {
    refused(
        "(devices: [(card: \"3090\", memory: 24)])",
        "line 1, column 35: memory: 24 is 24 bytes",
        "write \"24 GB\" (24e9 bytes) or \"24 GiB\"",
    );
    refused(
        "(devices: [\n  (name: \"a\", bandwidth: 936, flops: 71e12),\n])",
        "line 2, column 26: bandwidth: 936 is 936 bytes per second",
        "write \"936 GB/s\", or 936e9",
    );
    refused(
        "(devices: [\n  (card: \"3090\"),\n  (card: \"3900\"),\n])",
        "line 3, column 10: unknown card `3900`",
        "did you mean RTX 3090? `tpc devices` lists the known cards; describe another by memory, bandwidth and flops",
    );
    refused(
        "(devices: [(card: \"RTX 6000\")])",
        "line 1, column 19: `RTX 6000` matches several cards",
        "write one of Quadro RTX 6000, RTX 6000 Ada, RTX PRO 6000, RTX PRO 6000 Max-Q, RTX PRO 6000 Server",
    );
    refused(
        "(devices: [(name: \"a\", bandwidth: -1e12, flops: 1e14)])",
        "line 1, column 35: bandwidth: `-1e12` is not a possible number of bytes per second",
        "write \"936 GB/s\", \"200 Gbit/s\", or the bytes per second: 936e9",
    );
    refused(
        "(devices: [(card: \"3090\", memory: Some(0))])",
        "line 1, column 40: memory is 0",
        "leave out `memory` if it is unknown",
    );
    refused(
        "(devices: [(card: \"3090\")], links: [(a: 0, b: 7, link: (bandwidth: 1e9, latency_us: 1))])",
        "line 1, column 47: a link names device 7, which is not in the list",
        "devices are 0 to 0, or 3090",
    );
    refused(
        "(devices: [(card: \"3090\")], link: (bandwidth: 1e9, latency_us: inf))",
        "line 1, column 64: latency_us: `inf` is not a number of at least 0",
        "write for example `latency_us: 10`",
    );
    refused(
        "(devices: [(card: \"3090\", count: 100)])",
        "line 1, column 34: count cannot be 100",
        "write a whole number from 1 to 64",
    );
    refused(
        "(devices: [(name: \"a\", memory: 24e9)])",
        "line 1, column 12: `bandwidth` and `flops` are missing",
        "add them, or `card: \"RTX 3090\"`; `tpc devices` lists cards",
    );
    refused(
        "(devices: [])",
        "line 1, column 1: the list of devices is empty",
        "list at least one: `devices: [(card: \"RTX 3090\")]`; `tpc devices` lists cards",
    );
    refused(
        "(devices: [(card: \"3090\")], link: \"ethernet\")",
        "line 1, column 35: unknown link `ethernet`",
        "write one of nvswitch, nvlink, pcie-p2p, pcie, network",
    );
    refused(
        "(devices: [(card: \"4090\", name: \"x\"), (card: \"4090\", name: \"y\")], links: [(a: 0, b: 1, link: \"nvlink\")])",
        "line 1, column 94: the speed of this link is unknown",
        "add it: `link: (bandwidth: \"50 GB/s\", latency_us: 8.0)`",
    );
}

#[test]
fn fields_that_there_are_not_have_the_nearest_named() {
    let fields = "card, name, count, memory, reserve, bandwidth, flops, pcie_lanes, processor";
    refused(
        "(devices: [(card: \"3090\", memmory: 1e9)])",
        "line 1, column 27: unknown field `memmory`",
        &format!("did you mean `memory`? the fields are {fields}"),
    );
    refused(
        "(\n  devices: [\n    (card: \"3090\", vram: 1e9),\n  ],\n)",
        "line 3, column 20: unknown field `vram`",
        &format!("did you mean `memory`? the fields are {fields}"),
    );
    refused(
        "(devices: [(card: \"3090\")], spped: 1)",
        "line 1, column 29: unknown field `spped`",
        "the fields are devices, cards, link, links, machines, network, host, host_link, calibration",
    );
}

#[test]
fn texts_that_are_no_ron_are_located() {
    for (text, line) in [
        ("", 1),
        ("Topology(", 1),
        ("Topology(devices: [(card: \"3090\")]", 1),
        ("Topology(\n  devices: [(card: \"3090\"]\n)", 2),
        ("Topology(\n  devices = []\n)", 2),
        ("{\"devices\": []}", 1),
        ("Machine(devices: [(card: \"3090\")])", 1),
        ("Topology(devices: [(card: \"3090)])", 1),
        ("Topology(devices: (card: \"3090\"))", 1),
        ("Topology(devices: [(card: \"3090\")]) more", 1),
        ("Topology(devices: [\"3090\"])", 1),
        ("Topology(devices: [(card: 1e9)])", 1),
        ("Topology(devices: [(card: \"a\\u{0}\")])", 1),
    ] {
        let e = TopologyFile::from_ron(text).expect_err(text);
        assert_eq!(e.line, line, "{text}: {e}");
        assert!(e.column >= 1 && !e.message.is_empty());
    }
    let deep = "(".repeat(100_000);
    assert!(TopologyFile::from_ron(&deep).is_err());
    assert!(
        TopologyFile::from_ron(&format!("(devices: [{}])", "(card: \"3090\"),".repeat(65)))
            .is_err()
    );
}

#[test]
fn machines_divide_the_devices_in_order() {
    let t = read(
        "Topology(devices: [(card: \"3090\", count: 6)],
                  machines: [Machine(devices: 2, count: 2, memory: \"512 GiB\"), (devices: 2)],
                  network: \"ib-ndr\")",
    );
    assert_eq!(t.machines, [0, 0, 1, 1, 2, 2]);
    assert_eq!(t.host.memory, Some(512.0 * GIB));
    let network = t.network.expect("a network");
    assert_eq!((network.bandwidth, network.kind), (50e9, LinkKind::Network));
    let t = read(
        "(devices: [(card: \"3090\", count: 2)], machines: [(devices: 1, count: 2)],
          network: (bandwidth: \"25 Gbit/s\"))",
    );
    assert_eq!(t.network, Some(Link::of(LinkKind::Network, 25e9 / 8.0)));
    let t = read("(devices: [(card: \"3090\", count: 2)])");
    assert_eq!((t.machines.len(), t.network), (0, None));
}

#[test]
fn wrong_machines_are_located_and_cured() {
    refused(
        "(devices: [(card: \"3090\", count: 16)], machines: [(devices: 6, count: 2)])",
        "line 1, column 51: the file lists 16 devices, but its machines have only 12",
        "divide all devices in order: `machines: [(devices: 8, count: 2)]` for 16 devices",
    );
    refused(
        "(devices: [(card: \"3090\")], machines: [(devices: 64, count: 64)])",
        "line 1, column 40: the file lists 1 devices, but its machines have more",
        "divide all devices in order: `machines: [(devices: 8, count: 2)]` for 16 devices",
    );
    refused(
        "(devices: [(card: \"3090\")], machines: [(memory: 1e12)])",
        "line 1, column 40: `devices` is missing",
        "add the number of devices in this machine: `(devices: 8)`",
    );
    refused(
        "(devices: [(card: \"3090\")], machines: [(devices: 0)])",
        "line 1, column 50: devices cannot be 0",
        "write a whole number from 1 to 64",
    );
    refused(
        "(devices: [(card: \"3090\", count: 2)], network: \"ib-ndr\")",
        "line 1, column 48: a network joins machines, but the file has one machine",
        "list the machines: `machines: [(devices: 8, count: 2)]`, or leave out the network",
    );
    let unknown = "(devices: [(card: \"3090\", count: 2)], machines: [(devices: 1, count: 2)], network: \"token ring\")";
    let e = TopologyFile::from_ron(unknown).expect_err("no such network");
    assert_eq!(e.message, "unknown network `token ring`");
    assert!(
        e.cure
            .expect("a cure")
            .starts_with("write one of 10gbe, 25gbe, 40gbe")
    );
}

#[test]
fn calibrations_are_kept() {
    let text = "// Two cards (of mine)\nTopology( // here (\n    devices: [(card: \"RTX 3090\", count: 2)] // no comma\n)\n";
    let mut calibration =
        tpc_passes::machine::Calibration::none(tpc_passes::machine::Engine::LlamaCpp);
    (
        calibration.bandwidth,
        calibration.rows,
        calibration.residual,
    ) = (0.9, 4, 0.05);
    calibration.ways = calibration.ways.with(tpc_passes::machine::Way::Tensor);
    let once = super::with_calibration(text, &calibration).expect("a topology");
    assert_eq!(read(&once).calibration, Some(calibration));
    calibration.bandwidth = 1.1;
    let twice = super::with_calibration(&once, &calibration).expect("a topology");
    assert_eq!(read(&twice).calibration, Some(calibration));
    assert_eq!(twice.matches("calibration").count(), 1);
}

#[test]
fn bad_calibrations_are_refused() {
    for bad in [
        "()",
        "(engine: \"vllm\")",
        "(engine: \"llama.cpp\", bandwidth: 0)",
        "(engine: \"llama.cpp\", bandwidth: 1e9)",
        "(engine: \"llama.cpp\", rows: -1)",
        "(engine: \"llama.cpp\", ways: \"sideways\")",
        "(engine: \"llama.cpp\", speed: 2)",
        "[1]",
    ] {
        let text = format!("Topology(devices: [(card: \"RTX 3090\")], calibration: {bad})");
        let e = super::TopologyFile::from_ron(&text).expect_err(bad);
        assert!(e.cure.is_some(), "{bad}: {e}");
    }
}
