//! The codes of violated invariants, TPC0270 to TPC0279, in the order of the list in [the module](super).

crate::codes! {
    pub(super) static;

    DANGLING = error(
        "TPC0270",
        "program refers to a missing part",
        "A program names a buffer, arena, instruction, launch or queue that it does not have, or a value has no \
         memory location.",
    )
    .cure("compile the model again. If a new artefact fails too, this is a bug in tpc: report it with the command.");

    SHAPES = error(
        "TPC0271",
        "malformed batch shapes",
        "A program needs at least one batch shape, in ascending order of size. All shapes have the same context, and \
         their sizes must not overflow.",
    )
    .cure("compile the model again.");

    COVER = error(
        "TPC0272",
        "instruction not covered by exactly one launch",
        "One launch covers each computing instruction, and runs once in the queue of each of its places, in the \
         phase with its tokens. Leaves have no launch, and views only if copied. Phases ascend by tokens.",
    )
    .cure("compile the model again.");

    LAUNCH = error(
        "TPC0273",
        "launch does not fit its instructions",
        "A launch runs at the place of its instructions; a transfer runs at the place of each result. Values that \
         enter or leave a launch need a memory location.",
    )
    .cure("compile the model again.");

    HOME = error(
        "TPC0274",
        "value at an invalid memory location",
        "A value must be in an arena of its place and kind. Views and in-place updates share their operand's memory; \
         other values fill a buffer without gaps. Weights whose rows end inside blocks need a storage format that \
         splits blocks.",
    )
    .cure("compile the model again.");

    BOUNDS = error(
        "TPC0275",
        "value exceeds its buffer or its arena",
        "For each shape's largest batch, values must end within their buffers, and buffers within their arenas. \
         Buffers begin at multiples of 16 bytes. Buffers that persist between batches must not overlap.",
    )
    .cure("compile the model again.");

    DEADLOCK = error(
        "TPC0276",
        "queues deadlock",
        "A queue waits for a step that does not exist, queues wait in a circle, or participants meet collectives in \
         different orders.",
    )
    .cure("compile the model again.");

    STALE = error(
        "TPC0277",
        "step reads memory without its valid content",
        "A value must be computed, and not yet overwritten, when a launch reads it. The same holds for outputs, and \
         for states at the end.",
    )
    .cure("compile the model again.");

    RACE = error(
        "TPC0278",
        "race between two steps",
        "Two steps access the same bytes and at least one writes, but no queue, wait or collective orders them.",
    )
    .cure("compile the model again.");

    IN_PLACE = error(
        "TPC0279",
        "launch overwrites its operand",
        "A launch may write to an operand's memory only if its op replaces elements in place, or reads each element \
         once, at the result's position.",
    )
    .cure("compile the model again.");
}
