//! A server with one client, as the door on standard input and output sees it.
use super::{out::Out, proxy::Proxy};
use crate::wire::lines::Item;
use std::{future::Future, process::ExitCode};
use tokio::time::Instant;

/// A server with one client.
pub(crate) trait Server: Send {
    /// What happened on its side.
    type Event: Send;

    /// Reads an item of the client's, before the proxy does.
    fn on_client(&mut self, item: &Item, proxy: &mut Proxy);

    /// Takes what the proxy has for either side, where that does not travel as lines.
    fn take(&mut self, _: &mut Proxy) {}

    /// Waits for an event, which is one of the server's own only if that `reads`. Writes what is to be written. Dropping
    /// it loses nothing.
    fn next(
        &mut self,
        to_server: &mut Out,
        reads: bool,
    ) -> impl Future<Output = Self::Event> + Send;

    /// Handles an event; returns the code with which the guard is to exit at once.
    fn on_event(
        &mut self,
        event: Self::Event,
        proxy: &mut Proxy,
        has_client: bool,
    ) -> Option<ExitCode>;

    /// Whether nothing more can come from it.
    fn is_over(&self, proxy: &Proxy) -> bool;

    /// Whether it has ended by itself for good.
    fn has_ended(&self) -> bool {
        false
    }

    /// Whether it may owe answers that the proxy does not know of.
    fn may_owe(&self, proxy: &Proxy) -> bool;

    /// The client has left. Returns until when its calls that were not sent yet are waited for.
    fn on_client_left(&mut self, _: &Proxy) -> Option<Instant> {
        None
    }

    /// Ends it; returns its exit code, if it ended by itself while its client was there.
    fn end(self) -> impl Future<Output = Option<u8>> + Send;
}
