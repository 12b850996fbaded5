//! Ports of processes that leave the choice to the system.
//! In: a port, 0 for any. Out: one to listen at and to tell others.
//! Not here: listening, which Ballista does by the number.

use std::io;
use std::net::{IpAddr, TcpListener};

/// The port itself, or one that is free now.
pub fn chosen(at: IpAddr, port: u16) -> io::Result<u16> {
    match port {
        0 => Ok(TcpListener::bind((at, 0))?.local_addr()?.port()),
        port => Ok(port),
    }
}
