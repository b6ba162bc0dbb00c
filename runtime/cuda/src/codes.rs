//! The codes of devices and kernels, TPC0540 to TPC0557.

tpc_ir::codes! {
    pub(super) static;

    DRIVER_MISSING = error(
        "TPC0540",
        "no CUDA driver",
        "tpc found no NVIDIA driver library, or the driver reports no device. Compiling an artefact needs no driver; \
         running on cards does.",
    )
    .example("`--executor cuda` in a container started without GPUs.")
    .cure("install the driver, or use `--executor emulated-cuda` or `cpu`.");

    DRIVER_TOO_OLD = error(
        "TPC0541",
        "CUDA driver too old",
        "The driver lacks a function that tpc needs: CUDA graphs with programmatic edges came with CUDA 12.3.",
    )
    .cure("install a driver of the 545 series or later.");

    NO_DEVICE = error(
        "TPC0542",
        "no such device",
        "The plan names a device that this machine does not have.",
    )
    .example("a plan for two cards on a machine with one.")
    .cure("plan for the devices of this machine, or name others.");

    ARCHITECTURE = error(
        "TPC0543",
        "no kernels for the device",
        "Kernels exist for compute capabilities 7.5 to 12.1. The artefact lacks this device's, and tpc cannot \
         compile them: the device is unsupported, or NVRTC is missing.",
    )
    .cure("compile the artefact with NVRTC: run `pip download nvidia-cuda-nvrtc --no-deps`, unpack the wheel, and \
           set TPC_NVRTC to its folder.");

    COMPILE = error(
        "TPC0544",
        "kernels do not compile",
        "The compiler rejects the kernels' source. The message has the compiler's output.",
    )
    .cure("update the compiler. If the compiler is current, this is a bug in tpc: report it with the message.");

    NO_COMPILER = error(
        "TPC0545",
        "no C++ compiler for emulated devices",
        "Emulated devices run kernels built by the machine's C++ compiler. tpc found no compiler.",
    )
    .cure("install g++ or clang++, or set CXX to a compiler.");

    NO_FUNCTION = error(
        "TPC0546",
        "no such kernel",
        "A launch names a kernel that its module does not have.",
    )
    .cure("compile the artefact again. If a new artefact fails too, this is a bug in tpc: report it with the \
           message.");

    NO_PEER_ACCESS = error(
        "TPC0547",
        "devices cannot access each other's memory",
        "The cards lack a direct link, or the system forbids peer access.",
    )
    .example("two cards on different processors, or in a virtual machine.")
    .cure("exchange data through host memory, or choose connected devices (`nvidia-smi topo -p2p r`).");

    OUT_OF_MEMORY = error(
        "TPC0548",
        "not enough memory on the device",
        "The program needs more memory than is free. The message has both numbers.",
    )
    .example("another process uses memory of the card.")
    .cure("end other processes on the device, or plan for more devices, a smaller context or smaller caches.");

    MALFORMED = error(
        "TPC0549",
        "launch graph that the device cannot run",
        "A launch graph names a missing item, or exceeds a limit of the device.",
    )
    .cure("compile the artefact again. If a new artefact fails too, this is a bug in tpc: report it with the \
           message.");

    HOST_WORK = error(
        "TPC0550",
        "host step failed",
        "A step that the host runs between launches failed. The message names the step.",
    )
    .cure("follow the message.");

    FAULT = error(
        "TPC0551",
        "fault in a kernel",
        "The emulator found an invalid access, a race, a barrier that threads miss, or an endless wait. The message \
         has the kernel, launch, block, thread and lines.",
    )
    .cure("report it with the message: this is a bug in tpc, unless the program was changed.");

    DRIVER = error(
        "TPC0552",
        "call of the CUDA driver failed",
        "The driver rejects a call, or the device failed while running.",
    )
    .example("a card that has fallen off the bus.")
    .cure("check `nvidia-smi` and the system log, then start the process again.");

    FILES = error(
        "TPC0553",
        "compiled kernels cannot be stored",
        "A file or folder of compiled kernels cannot be read or written.",
    )
    .cure("set TPC_CUDA_CACHE to a writable folder.");

    NVRTC_MISSING = error(
        "TPC0554",
        "NVRTC is missing",
        "NVRTC, a CUDA library, compiles kernels for cards. NVRTC needs neither a card nor a driver.",
    )
    .cure("install the CUDA toolkit, or run `pip download nvidia-cuda-nvrtc --no-deps`, unpack the wheel, and set \
           TPC_NVRTC to its folder.");

    NVRTC_UNUSABLE = error(
        "TPC0555",
        "unusable NVRTC",
        "The library was found, but does not load, lacks a function, or lacks the builtins file in its folder.",
    )
    .cure("unpack the whole wheel, or install the toolkit again.");

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
        "A kernel needs more registers than a thread has. Spilling to memory would make it many times slower.",
    )
    .cure("report it with the kernel and the target: this is a bug in tpc.");
}
