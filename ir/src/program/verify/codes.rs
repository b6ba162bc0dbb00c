//! The codes of violated invariants, TPC0270 to TPC0279.

crate::codes! {
    pub(super) static;

    DANGLING = error(
        "TPC0270",
        "program refers to a missing part",
        "A reference is invalid, or a value lacks a memory location.",
    )
    .cure("compile the model again. If a new artefact fails too, report this bug in tpc.");

    SHAPES = error(
        "TPC0271",
        "malformed batch shapes",
        "Shapes ascend in size, share one context, and must not overflow. A program has at least one shape.",
    )
    .cure("compile the model again.");

    COVER = error(
        "TPC0272",
        "instruction not covered by exactly one launch",
        "Exactly one launch covers each computing instruction. The launch is once in the queue of each of its places, \
         in the phase of its tokens. Leaves and views that are not copied need no launch.",
    )
    .cure("compile the model again.");

    LAUNCH = error(
        "TPC0273",
        "launch does not fit its instructions",
        "A launch runs at the place of its instructions, a transfer at the places of its results. Its operands \
         and stored results need a memory location.",
    )
    .cure("compile the model again.");

    HOME = error(
        "TPC0274",
        "value at an invalid memory location",
        "A value needs an arena of its place and kind. Views and in-place updates share memory; other values fill a \
         buffer without gaps. Weights cut inside blocks need a format that splits blocks.",
    )
    .cure("compile the model again.");

    BOUNDS = error(
        "TPC0275",
        "value exceeds its buffer or its arena",
        "For the largest batches, values must fit their buffers, and buffers their arenas. Buffers begin at multiples \
         of 16 bytes; persistent buffers must not overlap.",
    )
    .cure("compile the model again.");

    DEADLOCK = error(
        "TPC0276",
        "queues deadlock",
        "A queue waits for a missing step, queues wait for each other, or collectives run in different orders.",
    )
    .cure("compile the model again.");

    STALE = error(
        "TPC0277",
        "step reads memory without valid content",
        "A launch, output or final state reads bytes before the value is computed, or after it is overwritten.",
    )
    .cure("compile the model again.");

    RACE = error(
        "TPC0278",
        "race between two steps",
        "Two steps access the same bytes, at least one writes, and they are not ordered.",
    )
    .cure("compile the model again.");

    IN_PLACE = error(
        "TPC0279",
        "launch overwrites its operand",
        "Only ops that replace elements in place, or read each element once at the result's position, may write to \
         an operand's memory.",
    )
    .cure("compile the model again.");
}
