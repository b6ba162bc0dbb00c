// Two devices exchange blocks of numbers. Only flags order the accesses.

// Tries before a device stops waiting.
#define MOST_TRIES 4000000u

DEVICE u32 number(u32 round, u32 i, u32 rank) { return round * 1000003u + i * 7u + rank; }

// A round writes to the other device's inbox, and then reads its own. Rounds alternate between two inboxes.
// `report`: 0 if all is right, 1 if a flag did not arrive, 2 if a number was wrong; then the round and the number.
KERNEL(exchange_by_flags, u32 *inbox, u32 *others_inbox, u32 *flag, u32 *others_flag, u32 *report, u32 rounds, u32 rank) {
    SHARED(u32, late, 1);
    u32 i = threadIdx.x;
    if (i == 0) late[0] = 0;
    __syncthreads();
    for (u32 round = 1; round <= rounds && late[0] == 0; round++) {
        u32 at = (round % 2) * blockDim.x + i;
        others_inbox[at] = number(round, i, rank);
        __syncthreads();
        if (i == 0) {
            store_release(others_flag, round);
            u32 tries = 0;
            while (load_acquire(flag) < round && tries < MOST_TRIES) tries++;
            if (tries == MOST_TRIES) {
                late[0] = 1;
                report[0] = 1;
                report[1] = round;
            }
        }
        __syncthreads();
        u32 found = inbox[at];
        if (late[0] == 0 && found != number(round, i, 1 - rank)) {
            report[0] = 2;
            report[1] = round;
            report[2] = found;
        }
        __syncthreads();
    }
}
