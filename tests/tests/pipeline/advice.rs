//! The cures that a plan names when it does not fit: each fits, and the next milder one does not.

use tpc_core::advice::cures;
use tpc_core::pipeline::Compiled;
use tpc_core::placement::{
    HostExperts, Placement, SplitMode, parse_cache_type, parse_devices, parse_tensor_split,
};
use tpc_gguf::GgufFile;
use tpc_passes::machine::{DeviceProfile, Topology};
use tpc_tests::headers;

/// Devices with so many GB of memory, alike otherwise.
fn machine(gigabytes: &[f64]) -> Topology {
    let device = |gb: &f64| DeviceProfile {
        name: "d".into(),
        memory: Some(gb * 1e9),
        reserve: 0.0,
        bandwidth: 9e11,
        flops: 7e13,
        processor: None,
    };
    Topology {
        devices: gigabytes.iter().map(device).collect(),
        ..Topology::default()
    }
}

/// Eight experts and eight KV heads on devices of which one has half the memory of the other: shares that are in
/// proportion to the room are rounded to halves, which do not fit. Others do, and are found.
#[test]
fn shares_shift_until_a_plan_fits() {
    let path = headers().into_iter();
    let mut path = path.filter(|p| p.to_string_lossy().contains("mixtral"));
    let file = GgufFile::open(path.next().expect("in the repository")).expect("a header");
    for (gigabytes, room) in [
        (&[24.0, 12.0][..], true),
        (&[12.0, 24.0], true),
        (&[16.0, 8.0, 9.0], true),
        (&[20.0, 9.0], false),
    ] {
        let placement = Placement {
            topology: machine(gigabytes),
            ctx_size: Some(8192),
            ..Placement::on(parse_devices(&gigabytes.len().to_string()).expect("a count"))
        };
        let compiled =
            super::support::compiled(&file, &placement).unwrap_or_else(|d| panic!("{}", d[0]));
        assert_eq!(compiled.fits(), room, "{gigabytes:?} GB");
        // Shares that are asked for are taken as they are.
        let asked = Placement {
            tensor_split: Some(vec![1.0; gigabytes.len()]),
            ..placement
        };
        let compiled =
            super::support::compiled(&file, &asked).unwrap_or_else(|d| panic!("{}", d[0]));
        assert!(!compiled.fits(), "{gigabytes:?} GB in equal shares");
    }
}

/// The placement under a cure, and under the next milder one of its kind; `None` where that is what did not fit.
fn applied(base: &Placement, n_ctx: u64, cure: &str) -> (Placement, Option<Placement>) {
    let words: Vec<&str> = cure.split_whitespace().collect();
    let number = || words[1].parse::<u64>().expect("a number");
    let with = |change: &dyn Fn(&mut Placement)| {
        let mut out = base.clone();
        change(&mut out);
        out
    };
    match words[0] {
        "-c" => {
            let milder = number() + 256;
            (
                with(&|p| p.ctx_size = Some(number())),
                (milder < n_ctx).then(|| with(&|p| p.ctx_size = Some(milder))),
            )
        }
        "-ncmoe" => (
            with(&|p| p.host_experts = HostExperts::First(number())),
            Some(with(&|p| p.host_experts = HostExperts::First(number() - 1))),
        ),
        "-ngl" => (
            with(&|p| p.n_gpu_layers = Some(number())),
            Some(with(&|p| p.n_gpu_layers = Some(number() + 1))),
        ),
        "-ctk" => {
            let cache = parse_cache_type("-ctk", words[1]).expect("a cache type");
            (
                with(&|p| (p.cache_type_k, p.cache_type_v) = (cache, cache)),
                None,
            )
        }
        "-ts" => {
            let shares = parse_tensor_split(words[1], base.devices.len()).expect("shares");
            (with(&|p| p.tensor_split = Some(shares.clone())), None)
        }
        other => panic!("an unknown cure {other}"),
    }
}

/// The kinds of cures that a model gets on a machine, each of them checked.
fn checked(header: &str, gigabytes: &[f64], set: impl Fn(&mut Placement)) -> Vec<String> {
    let path = headers()
        .into_iter()
        .find(|p| p.to_string_lossy().contains(header))
        .unwrap_or_else(|| panic!("no header of {header}"));
    let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
    let mut base = Placement {
        topology: machine(gigabytes),
        split_mode: SplitMode::Auto,
        ..Placement::on(parse_devices(&gigabytes.len().to_string()).expect("a count"))
    };
    set(&mut base);
    let planned = |p: &Placement| -> Result<Compiled, _> { super::support::compiled(&file, p) };
    let compiled = planned(&base).expect("the model is planned");
    assert!(!compiled.fits(), "{header} fits {gigabytes:?}");
    let found = cures(&base, &compiled, &planned);
    for cure in &found {
        let (cured, milder) = applied(&base, compiled.caches.n_ctx, cure);
        let what = format!("{header} on {gigabytes:?} with {cure}");
        assert!(planned(&cured).expect("planned").fits(), "{what}: too much");
        let milder = milder.map(|p| Placement {
            split_mode: compiled.mode,
            ..p
        });
        if let Some(milder) = milder {
            assert!(
                !planned(&milder).expect("planned").fits(),
                "{what}: not the mildest"
            );
        }
    }
    let kind = |c: &String| c.split(' ').next().unwrap_or_default().to_owned();
    found.iter().map(kind).collect()
}

#[test]
fn every_cure_fits_and_the_next_milder_one_does_not() {
    assert_eq!(
        checked("llama-3.1-8b", &[10.0, 10.0], |_| ()),
        ["-c", "-ctk", "-ngl"]
    );
    assert_eq!(
        checked("llama-3.1-8b", &[3.0], |p| p.ctx_size = Some(8192)),
        ["-ngl"]
    );
    let experts = checked("mixtral", &[9.0, 9.0], |p| p.ctx_size = Some(8192));
    assert_eq!(experts, ["-ncmoe", "-ngl"]);
    let experts = checked("gpt-oss", &[24.0, 12.0], |_| ());
    assert_eq!(experts, ["-ncmoe", "-ngl"]);
    // Shares that the user gives are not corrected, but better ones are named.
    let shares = checked("llama-3.1-8b", &[8.0, 2.0], |p| {
        p.split_mode = SplitMode::Tensor;
        (p.ctx_size, p.tensor_split) = (Some(4096), Some(vec![1.0, 1.0]));
    });
    assert!(shares.contains(&"-ts".to_owned()), "{shares:?}");
}
