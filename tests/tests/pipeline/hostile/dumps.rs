//! Dumps of launches with changed bytes or fields.

use tpc_cuda::dump::{
    DeviceRecord, DumpHeader, DumpMemory, KernelRecord, LaunchDump, LaunchRecord, RegionRecord,
    Role, TensorRecord,
};
use tpc_cuda::kernels::InstanceRecord;

use super::{flip, odd_number};
use crate::random::Rng;

/// Returns a damaged dump. Its kernel is not tpc's, so tpc reads the dump but does not run the kernel.
pub(super) fn damaged(rng: &mut Rng) -> Vec<u8> {
    let mut dump = sound();
    if rng.one_in(2) {
        for _ in 0..rng.range(1, 3) {
            change(&mut dump.header, rng);
        }
    }
    let mut out = Vec::new();
    dump.write(&mut out).expect("memory");
    if rng.one_in(2) {
        flip(&mut out, rng);
    }
    out
}

fn change(header: &mut DumpHeader, rng: &mut Rng) {
    let n = odd_number(rng);
    let small = n as u32;
    // An earlier change may have removed them.
    let (Some(tensor), Some(region)) = (header.tensors.first_mut(), header.regions.first_mut())
    else {
        return;
    };
    match rng.range(0, 11) {
        0 => tensor.dims[rng.range(0, 3) as usize] = n,
        1 => tensor.strides[0] = n,
        2 => tensor.offset = n,
        3 => tensor.bytes = n,
        4 => tensor.region = Some(small),
        5 => region.bytes = n,
        6 => region.saved = n,
        7 => header.kernel.grid[1] = small,
        8 => header.kernel.threads = small,
        9 => header.kernel.params.push('x'),
        10 => header.launch.tensor = "\u{1b}[31m\n".to_owned(),
        _ => header.regions.clear(),
    }
}

fn sound() -> LaunchDump {
    let region = RegionRecord {
        memory: DumpMemory::Device,
        bytes: 16,
        saved: 16,
    };
    let tensor = TensorRecord {
        role: Role::Operand,
        name: "x".to_owned(),
        value: "v1".to_owned(),
        dtype: "f32".to_owned(),
        storage: "file".to_owned(),
        dims: [4, 1, 1, 1],
        strides: [4, 16, 16, 16],
        region: Some(0),
        offset: 0,
        bytes: 16,
    };
    let launch = LaunchRecord {
        number: 3,
        device: "cuda:0".to_owned(),
        kernel: "cumsum_F32".to_owned(),
        ops: vec!["cumsum".to_owned()],
        tensor: "x".to_owned(),
        value: "v1".to_owned(),
        dtype: "f32".to_owned(),
        shape: [4, 1, 1, 1],
    };
    let instance = InstanceRecord {
        family: "reduce".to_owned(),
        template: "cumsum<F32>".to_owned(),
        dtypes: vec!["f32".to_owned()],
        arguments: "views".to_owned(),
        prefetch: false,
        launch_bounds: None,
    };
    LaunchDump {
        header: DumpHeader {
            producer: "tpc 0".to_owned(),
            fault: "a fault".to_owned(),
            launch,
            device: DeviceRecord {
                name: "a card".to_owned(),
                capability: (9, 0),
                target: "sm_90a".to_owned(),
                multiprocessors: 132,
            },
            kernel: KernelRecord {
                entry: "cumsum_F32".to_owned(),
                instance,
                grid: [1, 1, 1],
                threads: 32,
                shared_bytes: 0,
                params: "0011ff".to_owned(),
                weights: Vec::new(),
            },
            tensors: vec![tensor],
            regions: vec![region],
        },
        source: "// another kernel\n".to_owned(),
        data: (0..16).collect(),
    }
}
