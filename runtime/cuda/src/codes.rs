//! The codes of devices and kernels, TPC0540 to TPC0557.

tpc_ir::codes! {
    pub(super) static;

    DRIVER_MISSING = error(
        "TPC0540",
        "no CUDA driver",
        "The library of NVIDIA's driver is not found on this machine, or it has no device. Compiling an artefact needs no \
         driver; running it on cards does.",
    )
    .example("`--executor cuda` in a container that was started without its cards.")
    .cure("install the driver, or run on `--executor emulated-cuda` or `cpu`.");

    DRIVER_TOO_OLD = error(
        "TPC0541",
        "CUDA driver too old",
        "The driver lacks a call that is needed: graphs of explicit nodes whose edges may be programmatic came with CUDA 12.3.",
    )
    .cure("a driver of the 545 series or later.");

    NO_DEVICE = error(
        "TPC0542",
        "no such device",
        "The plan names a device that is not on this machine.",
    )
    .example("a plan for two cards on a machine with one.")
    .cure("plan for the devices that are here, or name others.");

    ARCHITECTURE = error(
        "TPC0543",
        "no code for the device",
        "Kernels are compiled for compute capabilities 7.5 to 12.1. The module has none for the device, and none can be \
         compiled: the device is older or newer, or NVRTC is not there.",
    )
    .cure("compile the artefact with NVRTC at hand: `pip download nvidia-cuda-nvrtc --no-deps`, unpack the wheel, and name the \
           folder by the variable TPC_NVRTC.");

    COMPILE = error(
        "TPC0544",
        "kernels do not compile",
        "The compiler refuses the source of kernels. The message has what it says.",
    )
    .cure("this is a fault of tpc, or of a compiler that is too old: report it with the message.");

    NO_COMPILER = error(
        "TPC0545",
        "no C++ compiler for emulated devices",
        "Emulated devices run the kernels as the machine's own C++ compiler makes them, and none is found.",
    )
    .cure("install g++ or clang++, or name a compiler by the variable CXX.");

    NO_FUNCTION = error(
        "TPC0546",
        "no such kernel",
        "A module has no kernel of the name that a launch asks for.",
    )
    .cure("compile the artefact again; where that does not help, it is a fault of tpc.");

    NO_PEER_ACCESS = error(
        "TPC0547",
        "devices do not reach each other's memory",
        "The kernels of one device cannot read and write the memory of the other: nothing joins them, or the system forbids it.",
    )
    .example("two cards behind different processors, or in a virtual machine.")
    .cure("let them meet in the host's memory, or choose devices that are joined (`nvidia-smi topo -p2p r`).");

    OUT_OF_MEMORY = error(
        "TPC0548",
        "not enough memory on the device",
        "An allocation of the program does not fit into what is free. The message has both numbers.",
    )
    .example("another process holds memory of the card.")
    .cure("end what else uses the device; or plan for more devices, a smaller context or smaller caches.");

    MALFORMED = error(
        "TPC0549",
        "graph that a device cannot run",
        "A graph of launches names what is not there, or asks for more than a device allows.",
    )
    .cure("this is a fault of tpc, or of a changed artefact: compile it again.");

    HOST_WORK = error(
        "TPC0550",
        "work of the host failed",
        "A step that the host does between launches failed. The message names it.",
    )
    .cure("what the message says.");

    FAULT = error(
        "TPC0551",
        "fault in a kernel",
        "The emulation found what would be wrong on a card: an access out of bounds or to another device's memory, a race, \
         threads that do not meet at a barrier, or a wait without end. The message has the kernel, its launch, block and \
         thread, and the lines.",
    )
    .cure("this is a fault of tpc, or of a changed program: report it with the message.");

    DRIVER = error(
        "TPC0552",
        "call of the CUDA driver failed",
        "The driver refuses a call, or a device failed while it ran.",
    )
    .example("a card that has fallen off the bus.")
    .cure("`nvidia-smi` and the log of the system say more; the process must be started again.");

    FILES = error(
        "TPC0553",
        "compiled kernels cannot be kept",
        "A file or folder of compiled kernels cannot be read or written.",
    )
    .cure("name a folder that can be written to by the variable TPC_CUDA_CACHE.");

    NVRTC_MISSING = error(
        "TPC0554",
        "no NVRTC",
        "Kernels for cards are compiled by NVRTC, a library of CUDA that needs neither a card nor a driver. It is not found.",
    )
    .cure("install the CUDA toolkit, or `pip download nvidia-cuda-nvrtc --no-deps`, unpack the wheel, and name the folder by the \
           variable TPC_NVRTC.");

    NVRTC_UNUSABLE = error(
        "TPC0555",
        "unusable NVRTC",
        "A library is where NVRTC was looked for, and does not load, lacks a call, or lacks the file of its builtins beside it.",
    )
    .cure("unpack the whole wheel, or install the toolkit again.");

    NVRTC_TARGET = error(
        "TPC0556",
        "target that NVRTC does not know",
        "This version of NVRTC is older than the devices to compile for.",
    )
    .example("sm_120f with NVRTC 12.6.")
    .cure("NVRTC 13.0 knows all targets.");

    SPILLS = error(
        "TPC0557",
        "kernel that spills",
        "A kernel needs more registers than a thread has, so that it would keep them in memory and be many times slower.",
    )
    .cure("this is a fault of tpc: report it with the kernel and the target.");
}
