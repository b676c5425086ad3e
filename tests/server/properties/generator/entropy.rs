//! Choices made from bytes: the same bytes, the same case. A fuzzer changes bytes, proptest shrinks them; what has run
//! out reads as 0, and 0 is always the plainest choice, so that a shorter or lower string is a simpler case.

/// Bytes to choose by.
pub struct Entropy<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Entropy<'b> {
    /// Starts at the first byte.
    pub fn new(bytes: &'b [u8]) -> Self {
        Entropy { bytes, at: 0 }
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        byte
    }

    /// A number below `n`, which is at most 256.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }

    /// True in `percent` of cases, false for 0.
    pub fn chance(&mut self, percent: u32) -> bool {
        (255 - u32::from(self.byte())) * 100 < percent * 256
    }

    /// One of these; the first for 0.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Eight bytes at once.
    pub fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }
}

/// Bytes from a seed (splitmix64): as good as random here, and the same everywhere.
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    };
    (0..length.div_ceil(8)).flat_map(|_| next().to_le_bytes()).take(length).collect()
}
