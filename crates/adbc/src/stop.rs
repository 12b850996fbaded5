//! What ends a statement before its last row: a cancel of the statement, or of its connection.
//!
//! In: calls of cancel, from any thread. Out: an error in the thread that waits for the statement.
//! Invariant: a cancel ends what has begun, and nothing that begins later. A thread that waits is woken at once.
//! Not here: what is waited for.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use adbc_core::CancelHandle;
use futures::future::{Either, select};
use grouse::{Error, Session};
use tokio::sync::watch::{Receiver, Sender};

use crate::error;

/// Counts the cancels of a statement, or of a connection.
#[derive(Debug, Clone, Default)]
pub struct Interrupts(Arc<Sender<u64>>);

impl Interrupts {
    /// Something that begins, and ends with the next cancel of either.
    pub fn begin(&self, connection: &Interrupts) -> Begun {
        Begun {
            own: self.0.subscribe(),
            connection: connection.0.subscribe(),
            _senders: [self.clone(), connection.clone()],
        }
    }
}

impl CancelHandle for Interrupts {
    fn try_cancel(&self) -> error::Result<()> {
        self.0.send_modify(|cancels| *cancels += 1);
        Ok(())
    }
}

/// Something that has begun.
#[derive(Debug)]
pub struct Begun {
    own: Receiver<u64>,
    connection: Receiver<u64>,
    /// Whoever has begun may outlive the statement, which then can no longer be cancelled.
    _senders: [Interrupts; 2],
}

impl Begun {
    /// Waits for `future` on this thread, until a cancel; the future is dropped then, which stops the work behind it.
    pub fn wait<F: Future>(&mut self, session: &Session, future: F) -> grouse::Result<F::Output> {
        let Begun {
            own, connection, ..
        } = self;
        session.handle().block_on(async {
            let own = pin!(own.changed());
            let connection = pin!(connection.changed());
            match select(select(own, connection), pin!(future)).await {
                Either::Left(_) => Err(Error::Cancelled),
                Either::Right((value, _)) => Ok(value),
            }
        })
    }
}
