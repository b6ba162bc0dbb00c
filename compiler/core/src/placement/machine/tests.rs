use super::*;

const GIB: f64 = 1_073_741_824.0;

fn machine(list: &str, file: &str) -> Result<Machine, Diagnostic> {
    with(list, file, None, None)
}

fn with(
    list: &str,
    file: &str,
    way: Option<LinkKind>,
    reserve: Option<&str>,
) -> Result<Machine, Diagnostic> {
    let file = (!file.is_empty()).then(|| TopologyFile::from_ron(file).expect(file));
    let list = match list {
        "" => DeviceList::All,
        list => DeviceList::parse(list)?,
    };
    let reserve = reserve.map(Reserve::parse).transpose()?;
    MachineRequest {
        list: Some(&list),
        file: file.as_ref(),
        way,
        reserve: reserve.as_ref(),
        host_memory: None,
        servers: super::Servers::default(),
        nodes: &[],
    }
    .machine()
}

fn names(m: &Machine) -> Vec<&str> {
    m.devices.iter().map(|d| d.name.as_str()).collect()
}

const FILE: &str = "(devices: [(card: \"3090\", name: \"left\"), (card: \"3090\", name: \"right\", memory: 20e9),
                     (name: \"far\", memory: 8e9, reserve: 0, bandwidth: 5e11, flops: 5e13)],
                     link: (bandwidth: 1e10, latency_us: 20), links: [(a: 0, b: 2, link: (bandwidth: 1e9, latency_us: 90))])";

#[test]
fn a_count_without_a_file_is_the_default_machine() {
    for list in ["", "1", "4"] {
        let m = machine(list, "").expect(list);
        assert_eq!(m.topology, Topology::default());
        assert!(m.notes.is_empty());
    }
    assert_eq!(names(&machine("2", "").expect("two")), ["dev0", "dev1"]);
}

#[test]
fn processors_share_the_host() {
    let host = Topology::default().host;
    let bandwidths = |list: &str| -> Vec<f64> {
        let m = machine(list, "").expect(list);
        (0..m.devices.len())
            .map(|d| m.topology.device(d).bandwidth)
            .collect()
    };
    let device = Topology::default().devices[0].bandwidth;
    assert_eq!(bandwidths("cpu"), [host.bandwidth]);
    assert_eq!(bandwidths("cpu,cpu"), [host.bandwidth / 2.0; 2]);
    assert_eq!(bandwidths("cpu,cuda:0"), [host.bandwidth, device]);
    assert_eq!(bandwidths("cuda:0,cuda:1"), [device; 2]);
    // CPUs copy within the host's memory.
    let both = machine("cpu,cpu", "").expect("two").topology;
    assert!(both.link.bandwidth < host.bandwidth && both.link.latency_us < 10.0);
    let stated = machine("cpu,cpu,cpu", FILE).expect("three").topology;
    assert_eq!(stated.devices[2].bandwidth, 5e11);
    assert_eq!(stated.link.bandwidth, 1e10);
}

#[test]
fn all_devices_of_a_file_are_planned_under_its_names() {
    let m = machine("", FILE).expect("all");
    assert_eq!(names(&m), ["left", "right", "far"]);
    assert_eq!(m.topology.devices[1].memory, Some(20e9));
    assert_eq!(
        m.topology
            .devices
            .iter()
            .map(|d| d.reserve)
            .collect::<Vec<_>>(),
        [GIB, GIB, 0.0]
    );
    assert_eq!(m.topology.link, Link::new(1e10, 20.0));
    assert_eq!(m.topology.link_between(2, 0), Link::new(1e9, 90.0));
    assert_eq!(m.topology.links.len(), 1);
}

#[test]
fn the_first_of_a_file_and_those_that_are_named() {
    let m = machine("2", FILE).expect("two");
    assert_eq!(
        (names(&m), m.topology.links.len()),
        (vec!["left", "right"], 0)
    );
    let m = machine("FAR, left", FILE).expect("two");
    assert_eq!(names(&m), ["far", "left"]);
    assert_eq!(m.topology.link_between(0, 1), Link::new(1e9, 90.0));
    // Devices beyond the list share the last profile, which the topology stores once.
    let m = machine("5", FILE).expect("five");
    assert_eq!(names(&m), ["left", "right", "far#2", "far#3", "far#4"]);
    assert_eq!(m.topology.devices.len(), 3);
    assert_eq!(m.topology.device(4).memory, Some(8e9));
    let m = machine("cuda:1,cpu", FILE).expect("kinds");
    assert_eq!(names(&m), ["cuda:1#0", "cpu#1"]);
    assert_eq!(m.topology.devices[0].reserve, GIB);
    assert_eq!(m.topology.devices[1].reserve, 0.0);
    let m = machine("right,4090", FILE).expect("a card");
    assert_eq!(names(&m), ["right", "4090#1"]);
    let e = machine("middle", FILE).expect_err("no such device");
    assert!(e.help.expect("a cure").contains("left, right, far"));
}

#[test]
fn cards_have_their_memory_links_and_reserve() {
    let m = machine("2x4090", "").expect("cards");
    let d = &m.topology.devices[0];
    assert_eq!(
        (d.memory, d.reserve, d.bandwidth),
        (Some(24563.0 * 1048576.0), GIB, 1008e9)
    );
    assert_eq!(m.topology.link.kind, LinkKind::PcieHost);
    assert!((m.topology.host_link.bandwidth - 25.2e9).abs() < 1e8);
    assert!(m.notes.is_empty());
    let m = machine("4xH100-SXM", "").expect("cards");
    assert_eq!(
        (m.topology.link.kind, m.topology.link.bandwidth),
        (LinkKind::NvSwitch, 450e9)
    );
    assert!((m.topology.host_link.bandwidth - 50.4e9).abs() < 2e8);
    assert!(m.notes.is_empty());
}

#[test]
fn what_is_assumed_is_told() {
    let m = machine("2xH100", "").expect("cards");
    let [note] = m.notes.as_slice() else {
        panic!("{:?}", m.notes)
    };
    assert_eq!(note.message.to_string(), "`H100` is read as H100 SXM");
    assert!(note.help.as_ref().expect("a cure").contains("H100 PCIe"));
    let m = machine("2x3090", "").expect("cards");
    let [note] = m.notes.as_slice() else {
        panic!("{:?}", m.notes)
    };
    assert!(
        note.help
            .as_ref()
            .expect("a cure")
            .contains("--link nvlink")
    );
    for (list, way) in [("3090,4090", None), ("2x3090", Some(LinkKind::PcieHost))] {
        let m = with(list, "", way, None).expect("cards");
        assert!(m.notes.is_empty(), "{list}: {:?}", m.notes);
    }
}

#[test]
fn links_on_demand() {
    let m = with("2x3090", "", Some(LinkKind::NvLink), None).expect("bridged");
    assert_eq!(m.topology.link, Link::of(LinkKind::NvLink, 56.25e9));
    let e = with("2x4090", "", Some(LinkKind::NvLink), None).expect_err("no bridge");
    assert_eq!(e.message.to_string(), "RTX 4090 does not support nvlink");
    let e = with("2", "", Some(LinkKind::NvLink), None).expect_err("no card");
    assert!(e.help.expect("a cure").contains("2x3090"));
    let cards = "(devices: [(card: \"3090\", count: 2)], link: (bandwidth: 1e9, latency_us: 90))";
    let m = with("", cards, Some(LinkKind::PciePeer), None).expect("cards");
    assert_eq!(m.topology.link.kind, LinkKind::PciePeer);
    let m = machine(
        "",
        "(devices: [(card: \"3090\", count: 2)], link: \"nvlink\")",
    )
    .expect("cards");
    assert_eq!(m.topology.link.kind, LinkKind::NvLink);
    assert!(m.notes.is_empty());
}

#[test]
fn reserves_by_device() {
    let reserves = |list: &str, file: &str, reserve: &str| {
        let m = with(list, file, None, Some(reserve));
        m.map(|m| {
            m.topology
                .devices
                .iter()
                .map(|d| d.reserve / GIB)
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(reserves("2x4090", "", "2GiB"), Ok(vec![2.0; 2]));
    assert_eq!(reserves("2x4090", "", "0"), Ok(vec![0.0; 2]));
    assert_eq!(
        reserves("", FILE, "1GiB,2GiB,3GiB"),
        Ok(vec![1.0, 2.0, 3.0])
    );
    assert!(reserves("2x4090", "", "1GiB,1GiB,1GiB").is_err());
}

#[test]
fn files_without_links_have_the_default_or_those_of_cards() {
    let m = machine(
        "",
        "(devices: [(name: \"a\", bandwidth: 1e12, flops: 1e14), (card: \"3090\")])",
    )
    .expect("mixed");
    assert_eq!(m.topology.link, Topology::default().link);
    let m = machine("", "(devices: [(card: \"H100\", count: 8)])").expect("cards");
    assert_eq!(
        (m.topology.link.kind, m.topology.links.len()),
        (LinkKind::NvSwitch, 0)
    );
}
