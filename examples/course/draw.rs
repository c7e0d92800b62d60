//! Numbers that a seed draws, for the scenarios of the labs.

/// Draws the `nth` number of a seed, less than `bound`.
pub fn draw(seed: u64, nth: u64, bound: u64) -> u64 {
    let mixed = (seed ^ (nth << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) % bound
}
