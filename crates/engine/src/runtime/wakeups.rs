//! Tasks that a worker has woken, for other threads to take.
//!
//! In: a worker that has just woken another and goes on working. Out: the other runs on a thread that has nothing to do.
//! Invariant: costs one empty task, and nothing is waited for.
//! Not here: who is woken and when.
//!
//! A thread of tokio keeps the task that it woke last for itself, where no other thread sees it, until its own task gives way. That is
//! right for tasks of microseconds. A worker of ours decodes and groups for tens of milliseconds, in which the other would stand still.

/// Puts the task that this thread woke last where all threads take their tasks from.
pub(crate) fn share() {
    // The newer one takes its place.
    drop(tokio::spawn(std::future::ready(())));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use tokio::runtime::Builder;
    use tokio::sync::oneshot;

    #[test]
    fn a_woken_task_runs_while_its_waker_works() {
        let threads = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .build();
        let threads = threads.expect("two threads");
        let (call, called) = oneshot::channel();
        let ran = Arc::new(AtomicBool::new(false));
        let runs = Arc::clone(&ran);
        let other = threads.spawn(async move {
            let _ = called.await;
            runs.store(true, Ordering::SeqCst);
        });
        let worker = threads.spawn(async move {
            // Until the other waits.
            tokio::time::sleep(Duration::ZERO).await;
            let _ = call.send(());
            super::share();
            let started = Instant::now();
            while !ran.load(Ordering::SeqCst) && started.elapsed() < Duration::from_secs(30) {
                std::hint::spin_loop();
            }
            ran.load(Ordering::SeqCst)
        });
        let ended = threads.block_on(async { (worker.await, other.await) });
        assert!(ended.0.expect("it does not panic"));
        assert!(ended.1.is_ok());
    }
}
