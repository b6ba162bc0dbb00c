//! `tpc verify --numeric`: small models stand for large ones, agree with their programs, and reveal faults.

mod faults;
mod form;

use std::path::Path;

use tpc_core::pipeline::{CompiledModel, compile_capture};
use tpc_core::placement::{
    HostExperts, Placement, SplitMode, parse_devices, parse_overrides, parse_spec_type,
    parse_tensor_split,
};
use tpc_core::shrink::ShrunkModel;
use tpc_ggml::capture;
use tpc_ir::DType;
use tpc_numeric::{Agreement, Feed, compare, shrink};
use tpc_tests::{captures, goldens, headers};

use super::support::plan;

fn tensors(devices: usize) -> Placement {
    Placement {
        split_mode: SplitMode::Tensor,
        ..Placement::on(parse_devices(&devices.to_string()).expect("a count"))
    }
}

fn stem(path: &Path) -> String {
    let name = path.file_stem().expect("a file name");
    name.to_string_lossy().into_owned()
}

/// Shrinks a plan's model. Checks that the small programs have the same form.
fn small(what: &str, compiled: &CompiledModel) -> ShrunkModel {
    let shrunk = shrink(compiled).unwrap_or_else(|d| panic!("{what}: {} {d}", d.code));
    assert_eq!(shrunk.departure, None, "{what}");
    shrunk
}

fn agrees(what: &str, compiled: &CompiledModel) -> Agreement {
    let shrunk = small(what, compiled);
    let feed = Feed::Tokens(shrunk.window);
    compare(&shrunk, &feed).unwrap_or_else(|d| panic!("{what}: {} {d}", d.code))
}

fn planned(path: &Path, placement: &Placement) -> CompiledModel {
    let found = plan(path, placement).unwrap_or_else(|| panic!("{}", path.display()));
    found.1
}

#[test]
fn headers_of_real_models_agree() {
    for (i, path) in headers().iter().enumerate() {
        let devices = [3, 8][i % 2];
        let compiled = planned(path, &tensors(devices));
        let what = format!("{} on {devices}", stem(path));
        let agreement = agrees(&what, &compiled);
        assert!(
            agreement.numbers > 0 && agreement.nmse < 1e-20,
            "{what}: {agreement:?}"
        );
    }
}

#[test]
fn golden_models_agree() {
    for (i, path) in goldens().iter().enumerate() {
        let devices = [2, 3, 8][i % 3];
        let compiled = planned(path, &tensors(devices));
        agrees(&format!("{} on {devices}", stem(path)), &compiled);
    }
}

#[test]
fn captures_agree() {
    for (i, path) in captures().iter().enumerate() {
        let text = std::fs::read_to_string(path).expect("a capture");
        let captured = capture::read(&text, &stem(path)).unwrap_or_else(|e| panic!("{e}"));
        let devices = [2, 3, 8][i % 3];
        let what = format!("{} on {devices}", stem(path));
        let compiled = compile_capture(&captured, &tensors(devices))
            .unwrap_or_else(|d| panic!("{what}: {}", d[0]));
        let feed = Feed::Captured(captured.batch.clone());
        compare(&small(&what, &compiled), &feed).unwrap_or_else(|d| panic!("{what}: {d}"));
    }
}

#[test]
fn placements_are_carried_over() {
    type Set = Box<dyn Fn(&mut Placement)>;
    let overridden = |text: &'static str| -> Set {
        Box::new(move |p| {
            let list = [text.to_owned()];
            p.overrides = parse_overrides(&list, &p.devices).unwrap_or_else(|e| panic!("{e}"));
        })
    };
    let ways: Vec<(&str, Set)> = vec![
        ("-nkvo", Box::new(|p| p.kv_on_host = true)),
        (
            "-ncmoe 2",
            Box::new(|p| p.host_experts = HostExperts::First(2)),
        ),
        ("-ngl 3", Box::new(|p| p.n_gpu_layers = Some(3))),
        ("-sm layer", Box::new(|p| p.split_mode = SplitMode::Layer)),
        ("-sm none", Box::new(|p| p.split_mode = SplitMode::None)),
        ("-ot ffn_down=CPU", overridden(".*ffn_down.*=CPU")),
        ("-ot mirrored", overridden(r"blk\.1\.attn_q.*=mirrored")),
        (
            "-ts 3,0,2,1",
            Box::new(|p| p.tensor_split = parse_tensor_split("3,0,2,1", p.devices.len()).ok()),
        ),
        (
            "-ctk q8_0 -ctv q4_0",
            Box::new(|p| (p.cache_type_k, p.cache_type_v) = (DType::Q8_0, DType::Q4_0)),
        ),
        (
            "--spec-type draft-mtp",
            Box::new(|p| p.drafting = parse_spec_type("draft-mtp").expect("it is one")),
        ),
    ];
    // Each model has one or two ways, so that each way has several models.
    let n = ways.len();
    let large = headers().into_iter().map(|path| (path, n));
    let small = goldens().into_iter().map(|path| (path, n / 2));
    for (i, (path, step)) in large.chain(small).enumerate() {
        for (way, set) in ways.iter().skip(i % step).step_by(step) {
            let mut placement = tensors(4);
            set(&mut placement);
            let file = tpc_gguf::GgufFile::open(&path).unwrap_or_else(|e| panic!("{e}"));
            // Skip ways that the model does not support.
            if let Ok(compiled) = tpc_core::pipeline::compile(&file, &placement) {
                agrees(&format!("{} {way}", stem(&path)), &compiled);
            }
        }
    }
}

#[test]
fn small_models_are_the_same_each_time() {
    let path = goldens().remove(0);
    let make = || {
        let shrunk = small("again", &planned(&path, &tensors(3)));
        let agreement = compare(&shrunk, &Feed::Tokens(shrunk.window));
        (shrunk.programs, agreement.expect("it agrees"))
    };
    assert_eq!(make(), make());
}
