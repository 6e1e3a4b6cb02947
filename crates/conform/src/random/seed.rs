//! numpy's `SeedSequence`: how a seed is spread over a generator's state.
//!
//! The mixing is Melissa O'Neill's `seed_seq_fe` with a pool of four words, as numpy documents it.

const POOL_WORDS: usize = 4;

/// The pool a seed is hashed into. Only seeds that numpy takes as one non-negative integer below
/// 2^64 are covered: every published workload names one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedSequence {
    pool: [u32; POOL_WORDS],
}

/// The running multiplier of the hash: each word hashed moves it on.
struct Hash {
    constant: u32,
    multiplier: u32,
}

impl Hash {
    fn absorb(&mut self, word: u32) -> u32 {
        let mixed = word ^ self.constant;
        self.constant = self.constant.wrapping_mul(self.multiplier);
        let mixed = mixed.wrapping_mul(self.constant);
        mixed ^ (mixed >> 16)
    }
}

fn mix(left: u32, right: u32) -> u32 {
    let mixed = left.wrapping_mul(0xca01_f9dd).wrapping_sub(right.wrapping_mul(0x4973_f715));
    mixed ^ (mixed >> 16)
}

impl SeedSequence {
    /// The sequence of `numpy.random.SeedSequence(seed)`.
    pub fn new(seed: u64) -> Self {
        let mut hash = Hash { constant: 0x43b0_d7e5, multiplier: 0x931e_8875 };
        // A seed below 2^32 is one word of entropy; absent words hash as zero, so both cases meet here.
        let entropy = [seed as u32, (seed >> 32) as u32, 0, 0];
        let mut pool = entropy.map(|word| hash.absorb(word));
        for source in 0..POOL_WORDS {
            for target in 0..POOL_WORDS {
                if source != target {
                    pool[target] = mix(pool[target], hash.absorb(pool[source]));
                }
            }
        }
        Self { pool }
    }

    /// `generate_state(N, uint64)`: N words of state.
    pub fn generate_state<const N: usize>(&self) -> [u64; N] {
        let mut hash = Hash { constant: 0x8b51_f9dd, multiplier: 0x58f3_8ded };
        let mut position = 0;
        let mut next = || {
            let word = hash.absorb(self.pool[position % POOL_WORDS]);
            position += 1;
            u64::from(word)
        };
        std::array::from_fn(|_| {
            let low = next();
            low | (next() << 32)
        })
    }
}
