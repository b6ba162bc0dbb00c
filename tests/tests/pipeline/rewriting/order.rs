//! Sums in the order of one device if it is cheap.

use tpc_core::placement::Placement;
use tpc_ir::program::{Company, SumOrder};
use tpc_passes::bits::{DifferenceCause, find_differing_sums};
use tpc_tests::headers;

use crate::support::{placement, plan};

fn late(path: &std::path::Path, devices: usize, sums: SumOrder) -> usize {
    let placement = Placement {
        sums,
        ..placement(devices)
    };
    let (_, compiled) = plan(path, &placement).expect("the architecture is known");
    assert!(compiled.proof.is_ok(), "{}: not proved", path.display());
    let others = find_differing_sums(&compiled.programs, Company::UNKNOWN);
    others
        .get(&DifferenceCause::DeferredSum)
        .map_or(0, |of| of.sums)
}

#[test]
fn dense_models_keep_the_order_of_one_device() {
    let named = |part: &str| {
        headers()
            .into_iter()
            .find(|p| p.to_string_lossy().contains(part))
    };
    let dense = named("llama-3.1-8b").expect("the repository has the header");
    for devices in [2, 4, 8] {
        assert_eq!(late(&dense, devices, SumOrder::Auto), 0, "{devices}");
        assert_eq!(late(&dense, devices, SumOrder::OneDevice), 0, "{devices}");
        assert!(late(&dense, devices, SumOrder::Cheapest) > 0, "{devices}");
    }
    // The order of one device is impossible, so the planner does not pay for it.
    let cheapest = late(&dense, 3, SumOrder::Cheapest);
    assert_eq!(late(&dense, 3, SumOrder::Auto), cheapest);
    // Results of experts are added first, unless it is forbidden.
    if let Some(experts) = named("deepseek") {
        assert!(late(&experts, 2, SumOrder::Auto) > 0);
        assert_eq!(late(&experts, 2, SumOrder::OneDevice), 0);
    }
}
