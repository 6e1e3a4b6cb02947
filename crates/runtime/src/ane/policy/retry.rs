//! Loading fails now and then right after a compilation and succeeds a moment later.
//!
//! Source: maderix/ANE sleeps 100 ms and tries once more.

use std::time::Duration;

/// How long to wait before the second try.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// Tries, and once more after [`PAUSE`] where `again` says that it may help. Gives what the last try gave and whether it was the second.
pub(crate) fn retry_once<T, E>(mut work: impl FnMut() -> Result<T, E>, again: impl Fn(&E) -> bool) -> (Result<T, E>, bool) {
    match work() {
        Err(error) if again(&error) => {
            std::thread::sleep(PAUSE);
            (work(), true)
        }
        result => (result, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_second_try_comes_once_and_after_a_pause() {
        let (mut calls, start) = (0, Instant::now());
        let result = retry_once(
            || {
                calls += 1;
                if calls == 2 { Ok(calls) } else { Err(()) }
            },
            |()| true,
        );
        assert_eq!(result, (Ok(2), true));
        assert!(start.elapsed() >= PAUSE);
        let mut calls = 0;
        let result: (Result<(), usize>, bool) = retry_once(
            || {
                calls += 1;
                Err(calls)
            },
            |_| true,
        );
        assert_eq!(result, (Err(2), true));
    }

    #[test]
    fn what_cannot_get_better_is_not_tried_again() {
        assert_eq!(retry_once(|| Err::<(), _>("foreign"), |_| false), (Err("foreign"), false));
        assert_eq!(retry_once(|| Ok::<_, ()>(1), |()| true), (Ok(1), false));
    }
}
