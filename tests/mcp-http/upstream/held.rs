//! Answers that the server holds back, and clients that do not wait for them.
use super::Upstream;
use serde_json::Value;
use std::{net::TcpStream, thread};

impl Upstream {
    /// Gives answers that it has held back.
    pub(crate) fn release(&self) {
        self.state().is_released = true;
        self.0.changed.notify_all();
    }

    pub(super) fn wait_for_release(&self) {
        let state = self.state();
        drop(self.0.changed.wait_while(state, |state| !state.is_released).unwrap());
    }

    /// Whether the connection of a call for this order ended before its answer.
    pub(crate) fn was_left(&self, order: &str) -> bool {
        self.state().left.iter().any(|it| it == order)
    }

    /// Notes if the other side ends this connection.
    pub(super) fn watch(&self, raw: &TcpStream, order: &Value) {
        let (it, raw, order) = (self.clone(), raw.try_clone().unwrap(), order.clone());
        thread::spawn(move || {
            if !matches!(raw.peek(&mut [0]), Ok(1..)) {
                it.state().left.push(order);
            }
        });
    }
}
