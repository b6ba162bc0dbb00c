//! The codes of violated invariants, TPC0270 to TPC0279, in the order of the list in [the module](super).

crate::codes! {
    pub(super) static;

    DANGLING = error(
        "TPC0270",
        "a program refers to what it does not have",
        "A home, a launch or a step names a buffer, an arena, an instruction, a launch or a queue that the program does \
         not have, or a value has no entry in the table of homes.",
    )
    .cure("compile the model again; a program that a pass made so is a fault of tpc.");

    SHAPES = error(
        "TPC0271",
        "shapes of batches are malformed",
        "A program runs batches of at least one shape, the smallest first. All shapes have the same context, and their \
         sizes must not overflow.",
    )
    .cure("compile the model again.");

    COVER = error(
        "TPC0272",
        "an instruction is not covered once",
        "Every instruction that computes is covered by one launch, and every launch stands once in the queue of each of \
         its places, in the phase that knows the tokens which it needs. Leaves are covered by none, and views only where \
         their elements are copied. Phases ascend in these tokens.",
    )
    .cure("compile the model again.");

    LAUNCH = error(
        "TPC0273",
        "a launch does not fit what it covers",
        "A launch runs where its instructions are; a transfer runs at the place of each result. Values that leave a \
         launch have a home, and so have those that enter it.",
    )
    .cure("compile the model again.");

    HOME = error(
        "TPC0274",
        "a value lies where it cannot be",
        "A value lies in an arena of its place: weights among weights, states among states. A view lies within what it \
         views, at the offset and the strides that its op implies; an update in place lies where its operand does. All \
         other values fill a buffer of their own without gaps. A weight whose rows end inside blocks of the file is in a format \
         that takes blocks to pieces.",
    )
    .cure("compile the model again.");

    BOUNDS = error(
        "TPC0275",
        "a value reaches beyond its buffer or its arena",
        "For the largest batch of each shape, every value must end within its buffer, every buffer within its arena. Buffers \
         begin at multiples of 16 bytes, and what lasts from batch to batch must not overlap.",
    )
    .cure("compile the model again.");

    DEADLOCK = error(
        "TPC0276",
        "a queue waits for ever",
        "Queues run until each has done all of its steps. A wait for more steps than the other queue has, waits in a \
         circle, and collectives that participants meet in different orders never end.",
    )
    .cure("compile the model again.");

    STALE = error(
        "TPC0277",
        "a step reads what is no longer, or not yet, in memory",
        "When a launch reads a value, the value's bytes must hold it: it has been computed, and neither another value nor \
         an update in place has replaced it. The same is true of outputs and of states at the end.",
    )
    .cure("compile the model again.");

    RACE = error(
        "TPC0278",
        "two steps meet in memory without an order",
        "Of two steps that touch the same bytes, one of them writing, one must come before the other: in one queue, or \
         through waits and collectives.",
    )
    .cure("compile the model again.");

    IN_PLACE = error(
        "TPC0279",
        "a launch overwrites what it reads",
        "A launch may write to the memory of an operand only where its op replaces elements in place, or takes each \
         element once, at the place where the result goes.",
    )
    .cure("compile the model again.");
}
