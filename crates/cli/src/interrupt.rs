//! Ctrl-C and its relatives: SIGINT, SIGTERM and SIGHUP become an event that a running query waits for.
//! In: signals, taken by one thread. Out: [`Interrupts::next`], or the end of the process.
//! Invariant: while a query runs the first signal cancels it. A second one, or a first that has had no effect for `GRACE`, ends
//! the process, without its temporary output file and with the terminal as it was found. While nothing runs a signal ends the
//! process, but for Ctrl-C while another program has the terminal, which is that program's. The exit code is 128 + the signal.
//! Not here: Ctrl-C while the prompt edits a line, which is a key there and no signal.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use libc::c_int;
use tokio::sync::Notify;

/// How long a cancelled query may take to stop and to remove its files before the process ends regardless.
const GRACE: Duration = Duration::from_secs(3);

const SIGNALS: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Hears the signals of this process.
#[derive(Clone)]
pub struct Interrupts(Arc<Shared>);

struct Shared {
    running: AtomicBool,
    /// Whether another program has the terminal: a pager, or what `.shell` runs.
    elsewhere: AtomicBool,
    /// The signal that has been sent to the query but not been dealt with, or 0.
    pending: AtomicI32,
    arrived: Notify,
    temporaries: Mutex<Vec<PathBuf>>,
    terminal: Option<libc::termios>,
}

impl Interrupts {
    /// Blocks the signals in this thread, and so in all threads that are started later, and starts to listen.
    pub fn install() -> io::Result<Interrupts> {
        let set = signal_set();
        // SAFETY: `set` is a signal set filled in by signal_set; the old mask is not asked for.
        let failed = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        let shared = Arc::new(Shared {
            running: AtomicBool::new(false),
            elsewhere: AtomicBool::new(false),
            pending: AtomicI32::new(0),
            arrived: Notify::new(),
            temporaries: Mutex::default(),
            terminal: terminal_state(),
        });
        let listener = shared.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || listener.listen(&set))?;
        Ok(Interrupts(shared))
    }

    /// From now until the guard is dropped a signal cancels instead of ending the process.
    pub fn running(&self) -> Running<'_> {
        self.0.running.store(true, Ordering::SeqCst);
        Running(&self.0)
    }

    /// From now until the guard is dropped Ctrl-C is another program's.
    pub fn elsewhere(&self) -> Elsewhere<'_> {
        self.0.elsewhere.store(true, Ordering::SeqCst);
        Elsewhere(&self.0)
    }

    /// Waits for a signal.
    pub async fn next(&self) {
        while self.0.pending.load(Ordering::SeqCst) == 0 {
            self.0.arrived.notified().await;
        }
    }

    /// The signal that cancelled, or 0.
    pub fn signal(&self) -> i32 {
        self.0.pending.load(Ordering::SeqCst)
    }

    /// The cancellation has been dealt with: whatever was running has stopped.
    pub fn settled(&self) {
        self.0.pending.store(0, Ordering::SeqCst);
    }

    /// The files to remove should the process have to end at once.
    pub fn set_temporaries(&self, paths: Vec<PathBuf>) {
        *self.0.temporaries() = paths;
    }
}

/// A query runs as long as this lives.
pub struct Running<'a>(&'a Shared);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.store(false, Ordering::SeqCst);
    }
}

/// Another program has the terminal as long as this lives.
pub struct Elsewhere<'a>(&'a Shared);

impl Drop for Elsewhere<'_> {
    fn drop(&mut self) {
        self.0.elsewhere.store(false, Ordering::SeqCst);
    }
}

impl Shared {
    fn temporaries(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.temporaries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(&self, set: &libc::sigset_t) {
        loop {
            let pending = self.pending.load(Ordering::SeqCst);
            let signal = wait(set, (pending != 0).then_some(GRACE));
            match signal {
                None if pending != 0 && self.pending.load(Ordering::SeqCst) == pending => {
                    self.leave(pending);
                }
                None => {}
                Some(libc::SIGINT) if self.elsewhere.load(Ordering::SeqCst) => {}
                Some(signal) if !self.running.load(Ordering::SeqCst) => self.leave(signal),
                Some(signal) => {
                    if self.pending.swap(signal, Ordering::SeqCst) != 0 {
                        self.leave(signal);
                    }
                    self.arrived.notify_one();
                }
            }
        }
    }

    fn leave(&self, signal: c_int) -> ! {
        for path in self.temporaries().iter() {
            let _ = std::fs::remove_file(path);
        }
        if let Some(state) = &self.terminal {
            // SAFETY: `state` was filled in by tcgetattr for the same descriptor.
            unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, state) };
        }
        // SAFETY: _exit may be called at any time. exit would run destructors that the stuck threads may hold.
        unsafe { libc::_exit(128 + signal) }
    }
}

fn signal_set() -> libc::sigset_t {
    // SAFETY: sigemptyset makes any sigset_t valid, and the numbers added are signals.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in SIGNALS {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// Waits for one of the signals, for as long as `timeout` or without end.
#[cfg(target_os = "linux")]
fn wait(set: &libc::sigset_t, timeout: Option<Duration>) -> Option<c_int> {
    let limit = timeout.map(|t| libc::timespec {
        tv_sec: t.as_secs() as libc::time_t,
        tv_nsec: t.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `set` is a valid set; the information about the sender is not asked for; `limit` is null or lives in
    // this frame.
    let signal = unsafe { libc::sigtimedwait(set, std::ptr::null_mut(), limit) };
    (signal > 0).then_some(signal)
}

/// Waits for one of the signals; without sigtimedwait a stuck query ends at the second signal only.
#[cfg(not(target_os = "linux"))]
fn wait(set: &libc::sigset_t, _timeout: Option<Duration>) -> Option<c_int> {
    let mut signal = 0;
    // SAFETY: `set` is a valid set and `signal` lives in this frame.
    let failed = unsafe { libc::sigwait(set, &mut signal) };
    (failed == 0).then_some(signal)
}

/// How the terminal on standard input is set, if it is one.
fn terminal_state() -> Option<libc::termios> {
    // SAFETY: tcgetattr fills the structure in, or fails and it is not used.
    unsafe {
        let mut state = std::mem::zeroed();
        (libc::tcgetattr(libc::STDIN_FILENO, &mut state) == 0).then_some(state)
    }
}
