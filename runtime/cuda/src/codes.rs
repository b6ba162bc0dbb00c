tpc_ir::codes! {
    pub static;

    DRIVER_MISSING = error(
        "TPC0540",
        "no CUDA driver",
        "The NVIDIA driver library is missing, or reports no device. Compiling needs no driver; running on cards \
         does.",
    )
    .cure("install the driver, or use `--executor emulated-cuda` or `cpu`.");

    DRIVER_TOO_OLD = error(
        "TPC0541",
        "CUDA driver too old",
        "CUDA graphs with programmatic edges need CUDA 12.3.",
    )
    .cure("install a driver of the 545 series or later.");

    NO_DEVICE = error(
        "TPC0542",
        "no such device",
        "The plan names a device that this machine lacks.",
    )
    .cure("plan for devices of this machine, or name other devices.");

    ARCHITECTURE = error(
        "TPC0543",
        "no kernels for the device",
        "The artefact lacks kernels for the device, and tpc cannot compile them: its compute capability is not 7.5 \
         to 12.1, or NVRTC is missing.",
    )
    .cure("compile the artefact with NVRTC: `pip download nvidia-cuda-nvrtc-cu12==12.9.86 --no-deps`, unpack the wheel, set \
           TPC_NVRTC to its folder.");

    COMPILE = error(
        "TPC0544",
        "kernels do not compile",
        "The compiler rejects the kernels' source.",
    )
    .cure("update the compiler that the message names (NVRTC or C++). If it is current, report this bug in tpc with the message.");

    NO_COMPILER = error(
        "TPC0545",
        "no C++ compiler for emulated devices",
        "Emulated devices need the machine's C++ compiler, or the compiler that CXX names does not run.",
    )
    .cure("install g++ or clang++, and set CXX to a compiler or unset it.");

    NO_FUNCTION = error(
        "TPC0546",
        "no such kernel",
        "A launch names a kernel that its module lacks.",
    )
    .cure("compile the artefact again. If a new artefact fails too, report this bug in tpc.");

    NO_PEER_ACCESS = error(
        "TPC0547",
        "devices cannot access each other's memory",
        "The cards lack a link, the system forbids peer access, or a test pattern arrived changed. tpc then exchanges \
         data through the host's memory, which is slower.",
    )
    .example("two cards on different processors, or an IOMMU that changes peer copies.")
    .cure("if data arrive changed, turn off the IOMMU or PCIe ACS (`nvidia-smi topo -p2p r`); no other action is \
           needed.")
    .with_milder_severity(tpc_ir::Severity::Warning);

    OUT_OF_MEMORY = error(
        "TPC0548",
        "not enough memory on the device",
        "The program needs more memory than is free.",
    )
    .cure("end other processes on the device, use more devices, a smaller context or smaller caches.");

    MALFORMED = error(
        "TPC0549",
        "launch graph that the device cannot run",
        "The graph names a missing item, or exceeds a device limit.",
    )
    .cure("compile the artefact again. If a new artefact fails too, report this bug in tpc.");

    HOST_WORK = error(
        "TPC0550",
        "host step failed",
        "A step between launches failed. The message names the step.",
    )
    .cure("follow the message.");

    FAULT = error(
        "TPC0551",
        "fault in a kernel",
        "The emulator found an invalid access, a race, a missed barrier or an endless wait.",
    )
    .cure("report this bug in tpc with the message, unless you changed the program.");

    DRIVER = error(
        "TPC0552",
        "CUDA driver call failed",
        "The driver rejects a call, or the device failed.",
    )
    .cure("check `nvidia-smi` and the system log, then restart the process.");

    FILES = error(
        "TPC0553",
        "compiled kernels cannot be stored",
        "A file or folder of the kernel cache cannot be read or written.",
    )
    .cure("set TPC_CUDA_CACHE to a writable folder.");

    NVRTC_MISSING = error(
        "TPC0554",
        "NVRTC is missing",
        "NVRTC compiles kernels, without a card or driver.",
    )
    .cure("install the CUDA toolkit, or `pip download nvidia-cuda-nvrtc-cu12==12.9.86 --no-deps`, unpack the wheel, and set \
           TPC_NVRTC to its folder.");

    NVRTC_UNUSABLE = error(
        "TPC0555",
        "unusable NVRTC",
        "The library does not load, lacks a function, or lacks its builtins file. Or TPC_NVRTC names a file or folder \
         without the library.",
    )
    .cure("unpack the whole wheel, or install the toolkit again. Set TPC_NVRTC to its folder, or unset it.");

    NVRTC_TARGET = error(
        "TPC0556",
        "target that NVRTC does not know",
        "NVRTC is older than the devices to compile for.",
    )
    .example("sm_120f with NVRTC 12.6.")
    .cure("use NVRTC 13.0, which knows all targets.");

    SPILLS = error(
        "TPC0557",
        "kernel spills registers",
        "A kernel needs more registers than a thread has, and would be many times slower.",
    )
    .cure("report this bug in tpc with the kernel and the target.");

    KERNEL_FAILED = error(
        "TPC0558",
        "kernel failed on the card",
        "A kernel accessed an illegal address, or stopped. The card's driver then ends all work of the process.",
    )
    .cure("run the command again with `--dump-on-fault DIR`: it names the launch and saves its operands. Report this bug in tpc with the message.");

    DEVICE_LOST = error(
        "TPC0559",
        "card lost",
        "The card or its link has an error, or the driver no longer reaches the card.",
    )
    .example("an ECC error; a card that has fallen off the bus.")
    .cure("search the system log for `Xid` (`dmesg`), check `nvidia-smi`, then restart the machine. If the same launch \
           fails again (`--dump-on-fault DIR`), report this bug in tpc.");

    HANG = error(
        "TPC0577",
        "launch did not end",
        "With `--dump-on-fault` and in `tpc replay`, a launch has a time limit: `TPC_LAUNCH_LIMIT` in seconds.",
    )
    .cure("raise TPC_LAUNCH_LIMIT if other programs use the device; else report this bug in tpc with the message.");

    LAUNCH_DUMP = error(
        "TPC0578",
        "unusable dump of a launch",
        "The file is not a dump of `--dump-on-fault`, is damaged, or has impossible sizes.",
    )
    .cure("copy the file again, or write a new one with `--dump-on-fault DIR`.");

    DUMP_KERNEL = error(
        "TPC0579",
        "dump with a foreign kernel",
        "The kernel's source in the dump differs from this tpc's. `tpc replay` compiles and runs it only if you trust it.",
    )
    .example("a dump of another version of tpc.")
    .cure("use the version of tpc that the message names, or add `--trust-kernel` if you trust the file's origin.");
}
