//! Calls of the frameworks that may never return.

use super::error::Step;
use super::fault::{Fault, Kind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Makes a call on a thread of its own and waits for it. Nothing can end a call into a framework: one that is given up goes on, keeps
/// what it holds, and what it gives in the end is dropped.
pub(crate) fn within<T: Send + 'static>(
    patience: Duration,
    step: Step,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let (sender, receiver) = channel();
    let call = move || {
        let _ = sender.send(work());
    };
    let started = thread::Builder::new().name("aneforge-call".to_string()).spawn(call);
    let refused = |text: String| Fault::kind(step, Kind::Refused, text);
    started.map_err(|error| refused(format!("the system gives no thread: {error}")))?;
    receiver.recv_timeout(patience).map_err(|error| match error {
        RecvTimeoutError::Timeout => {
            Fault::kind(step, Kind::Silent(patience), format!("the call had not returned after {:.1} s", patience.as_secs_f64()))
        }
        RecvTimeoutError::Disconnected => refused("the call ended without an answer".to_string()),
    })
}
