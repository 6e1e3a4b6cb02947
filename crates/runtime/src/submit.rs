//! Work on bound buffers that is handed in and told about when it is done.
//!
//! A thread of ours waits for the engine, one for the process: the engine works on one command at a time, and e5rt's own asynchronous
//! submission is not used. Its block runs inside of the submission, not at its end, and a second stream's end is never told (PyPI package
//! aneforge 0.4.0; ANE guide, arXiv 2606.22283, chapter 6); the in-memory classes call their handler on the calling thread (Espresso).

use crate::{Bound, DeviceError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

/// What is called at the end, on the worker's thread: with the binding, which is free again, and how it went.
pub type Completion = Box<dyn FnOnce(Box<dyn Bound>, Result<(), DeviceError>) + Send>;

/// Executes a binding behind those that were submitted before, and returns at once.
///
/// # Errors
/// [`DeviceError::Internal`] where the system gives no thread; the binding is then lost.
pub fn submit(bound: Box<dyn Bound>, completion: Completion) -> Result<(), DeviceError> {
    let fault = |problem: String| DeviceError::internal("submit", problem);
    let sender = worker().as_ref().map_err(|problem| fault(problem.clone()))?;
    sender.send((bound, completion)).map_err(|_| fault("the worker has ended".to_string()))
}

type Job = (Box<dyn Bound>, Completion);

fn worker() -> &'static Result<Sender<Job>, String> {
    static WORKER: OnceLock<Result<Sender<Job>, String>> = OnceLock::new();
    WORKER.get_or_init(|| {
        let (sender, jobs) = channel::<Job>();
        let work = move || {
            for (mut bound, completion) in jobs {
                // A completion that panics must not keep those behind it from being told.
                let _ = catch_unwind(AssertUnwindSafe(move || {
                    let result = bound.execute();
                    completion(bound, result);
                }));
            }
        };
        let thread = std::thread::Builder::new().name("aneforge-submit".to_string()).spawn(work);
        thread.map(|_| sender).map_err(|error| error.to_string())
    })
}
