//! Which instruction set the kernels use.

use std::fmt;
use std::sync::OnceLock;

use super::Kernel;
use super::portable::Portable;
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// An instruction set that this processor has.
///
/// Values come from detection only, so holding one is the proof that its instructions may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(Kind);

impl Level {
    /// Plain Rust, present everywhere.
    pub const PORTABLE: Level = Level(Kind::Portable);

    /// The level of a token, which stands for the detection.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn avx2(_: Avx2) -> Level {
        Level(Kind::Avx2)
    }

    /// The level of a token, which stands for the detection.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn avx512(_: Avx512) -> Level {
        Level(Kind::Avx512)
    }

    /// All levels of this processor, slowest first.
    pub fn available() -> Vec<Level> {
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
        let mut levels = vec![Level::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
            if avx2 {
                levels.push(Level(Kind::Avx2));
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                {
                    levels.push(Level(Kind::Avx512));
                }
            }
        }
        levels
    }

    /// The level that the process uses: the fastest one, or the one that the environment
    /// variable `ANEFORGE_SIMD` names (`portable`, `avx2`, `avx512`) if the processor has it.
    /// Asked once.
    pub fn active() -> Level {
        static ACTIVE: OnceLock<Level> = OnceLock::new();
        *ACTIVE.get_or_init(|| {
            let wanted = std::env::var("ANEFORGE_SIMD").ok();
            let levels = Level::available();
            wanted
                .and_then(|name| levels.iter().copied().find(|level| level.name() == name))
                .or(levels.last().copied())
                .unwrap_or(Level::PORTABLE)
        })
    }

    /// `portable`, `avx2` or `avx512`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
        }
    }

    /// Columns of one weight panel: two vectors.
    pub fn panel_width(self) -> usize {
        struct Width;
        impl Kernel for Width {
            type Output = usize;
            #[inline(always)]
            fn run<S: super::Simd>(self, _: S) -> usize {
                2 * S::LANES
            }
        }
        self.dispatch(Width)
    }

    /// Runs a kernel, compiled for this level's instructions.
    #[inline]
    pub(crate) fn dispatch<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Kind::Portable => enter_portable(kernel),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Level` of this kind comes from `available`, which detected the features.
            Kind::Avx2 => unsafe { enter_avx2(kernel) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Kind::Avx512 => unsafe { enter_avx512(kernel) },
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Never inlined, like the other two: nested kernels would pile up in one huge function.
#[inline(never)]
fn enter_portable<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Portable)
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn enter_avx2<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: the caller has these features.
    kernel.run(unsafe { Avx2::new_unchecked() })
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")]
unsafe fn enter_avx512<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: the caller has these features.
    kernel.run(unsafe { Avx512::new_unchecked() })
}

#[cfg(test)]
mod tests {
    use super::Level;

    #[test]
    fn portable_is_always_there_and_the_active_level_is_one_of_them() {
        let levels = Level::available();
        assert_eq!(levels[0], Level::PORTABLE);
        assert!(levels.contains(&Level::active()));
    }
}
