//! The line to upstream that carries one client's session; its bytes are the session's affair.

use std::io;
use std::time::Duration;

use crate::upstream::address::UpstreamAddress;
use crate::upstream::connect::{self, UpstreamStream};

/// Opens a line for a client. Nothing is sent on it: the client's own start-up packet is the first.
pub async fn open(address: &UpstreamAddress, limit: Duration) -> io::Result<UpstreamStream> {
    connect::open(&address.endpoint, limit).await
}
