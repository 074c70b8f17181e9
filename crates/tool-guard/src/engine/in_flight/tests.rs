//! Random interleavings of all that can happen to calls.
use super::{attempt::LATE, *};
use crate::{
    engine::{identity::Client, request::Request},
    wire::jsonrpc::{Line, read},
};
use proptest::{prelude::*, sample::Index};
use tr_core::ToolOutcome;

const PREFIX: &str = "ours-";

#[derive(Clone, Debug)]
enum Event {
    Open { id: u8, token: Option<u8> },
    Launch { of: Index },
    Answer { of: Index, again: bool },
    Cancel { id: u8 },
    Abandon { of: Index },
    Progress { of: Index, progress: u8 },
    Close { of: Index },
    Gone,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0u8..5, prop::option::of(0u8..3)).prop_map(|(id, token)| Event::Open { id, token }),
        4 => any::<Index>().prop_map(|of| Event::Launch { of }),
        4 => (any::<Index>(), any::<bool>()).prop_map(|(of, again)| Event::Answer { of, again }),
        2 => (0u8..5).prop_map(|id| Event::Cancel { id }),
        2 => any::<Index>().prop_map(|of| Event::Abandon { of }),
        3 => (any::<Index>(), any::<u8>()).prop_map(|(of, progress)| Event::Progress { of, progress }),
        2 => any::<Index>().prop_map(|of| Event::Close { of }),
        1 => Just(Event::Gone),
    ]
}

fn call(id: u8, token: Option<u8>) -> Arc<McpCall> {
    let meta = token.map(|token| format!(",\"_meta\":{{\"progressToken\":{token}}}"));
    let meta = meta.unwrap_or_default();
    let text =
        format!("{{\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"x\"{meta}}}}}\n");
    let line = Bytes::from(text);
    let Line::One(message) = read(&line) else { panic!("is JSON") };
    Arc::new(Request::read(&line, &message, &Client::default()).unwrap().call)
}

fn is_ours(token: &Token) -> bool {
    token.to_string().starts_with(PREFIX)
}

struct Sent {
    wire_id: Token,
    call: Arc<McpCall>,
    ending: oneshot::Receiver<Ending>,
}

#[derive(Default)]
struct Model {
    open: Vec<Arc<McpCall>>,
    cancelled: Vec<Token>,
    in_flight: Vec<Sent>,
    /// All ids that were ever on the wire.
    wired: Vec<Token>,
}

impl Model {
    /// The attempts that have ended; each of them did so once, since its sender is gone.
    fn reap(&mut self, ends: impl Fn(&Ending) -> bool) -> usize {
        let before = self.in_flight.len();
        self.in_flight.retain_mut(|attempt| match attempt.ending.try_recv() {
            Ok(ending) => {
                assert!(ends(&ending), "{ending:?}");
                false
            }
            Err(oneshot::error::TryRecvError::Empty) => true,
            Err(oneshot::error::TryRecvError::Closed) => panic!("an attempt ended without a word"),
        });
        before - self.in_flight.len()
    }
}

fn answered(ending: &Ending) -> bool {
    matches!(ending, Ending::Answered(..))
}

fn answer() -> Ending {
    let answer =
        crate::engine::failure::Answer { line: Bytes::new(), id_range: 0..0, opaque: false };
    Ending::Answered(Some(answer), ToolOutcome::default())
}

#[expect(clippy::disallowed_methods, reason = "a base for made-up times")]
fn base() -> Instant {
    Instant::now()
}

proptest! {
    #[test]
    fn every_attempt_ends_once_and_no_id_of_ours_reaches_the_client(
        events in prop::collection::vec(event(), 0..120),
    ) {
        let now = base();
        let mut in_flight = InFlight::new(PREFIX);
        let mut model = Model::default();
        for event in events {
            match event {
                Event::Open { id, token } => {
                    let call = call(id, token);
                    let in_use = model.open.iter().any(|open| open.id == call.id);
                    prop_assert_eq!(in_flight.open(&call).is_err(), in_use);
                    if !in_use {
                        model.open.push(call);
                    }
                }
                Event::Launch { of } if !model.open.is_empty() => {
                    let call = of.get(&model.open).clone();
                    // One attempt at a time, as a call has it.
                    if model.in_flight.iter().any(|attempt| Arc::ptr_eq(&attempt.call, &call)) {
                        continue;
                    }
                    let launched = in_flight.launch(&call, PendingAnswer::default(), now);
                    let cancelled = model.cancelled.contains(&call.id);
                    prop_assert_eq!(launched.is_none(), cancelled, "a withdrawn call runs no more");
                    let Some(launched) = launched else { continue };
                    let fresh = !model.in_flight.iter().any(|at| at.wire_id == launched.wire_id);
                    prop_assert!(fresh, "two attempts under one id");
                    if is_ours(&launched.wire_id) {
                        prop_assert!(!model.wired.contains(&launched.wire_id));
                    } else {
                        prop_assert_eq!(&launched.line, &call.line);
                    }
                    model.wired.push(launched.wire_id.clone());
                    model.in_flight.push(Sent { wire_id: launched.wire_id, call, ending: launched.ending });
                }
                Event::Answer { of, again } if !model.wired.is_empty() => {
                    let id = of.get(&model.wired).clone();
                    let waited = model.in_flight.iter().any(|attempt| attempt.wire_id == id);
                    match in_flight.answered(&id) {
                        Answered::Attempt { ending, .. } => {
                            prop_assert!(waited);
                            ending.send(answer()).unwrap();
                            prop_assert_eq!(model.reap(answered), 1);
                        }
                        Answered::Late { pass, .. } => {
                            prop_assert!(!waited);
                            prop_assert!(!(pass && is_ours(&id)), "an id that the client does not know");
                        }
                        Answered::Unmatched => prop_assert!(!waited && !is_ours(&id)),
                    }
                    if again {
                        let second = in_flight.answered(&id);
                        let waited = matches!(second, Answered::Attempt { .. });
                        prop_assert!(!waited);
                        prop_assert!(!(is_ours(&id) && matches!(second, Answered::Unmatched)));
                    }
                }
                Event::Cancel { id } => {
                    let id = call(id, None).id.clone();
                    let relay = in_flight.cancel(&id).unwrap_or(Relay::Raw);
                    if model.open.iter().any(|open| open.id == id) {
                        model.cancelled.push(id);
                    }
                    let ended = model.reap(|ending| matches!(ending, Ending::Failed(_)));
                    prop_assert!(ended <= 1);
                    match relay {
                        Relay::With(text) => {
                            let known = model.wired.iter().any(|wired| wired.to_json() == *text);
                            prop_assert!(known && ended == 1);
                        }
                        Relay::Discarded => prop_assert_eq!(ended, 0),
                        Relay::Raw => {}
                    }
                }
                Event::Abandon { of } if !model.in_flight.is_empty() => {
                    let attempt = model.in_flight.swap_remove(of.index(model.in_flight.len()));
                    prop_assert!(in_flight.abandon(&attempt.wire_id).is_some());
                    prop_assert!(in_flight.abandon(&attempt.wire_id).is_none());
                }
                Event::Progress { of, progress } if !model.wired.is_empty() => {
                    let id = of.get(&model.wired);
                    match in_flight.progressed(id, Some(progress.into()), now) {
                        Relay::Raw => prop_assert!(!is_ours(id)),
                        Relay::With(text) => prop_assert!(!text.contains(PREFIX)),
                        Relay::Discarded => {}
                    }
                }
                Event::Close { of } if !model.open.is_empty() => {
                    let call = of.get(&model.open).clone();
                    if model.in_flight.iter().any(|attempt| Arc::ptr_eq(&attempt.call, &call)) {
                        continue;
                    }
                    in_flight.close(&call.id);
                    prop_assert!(!in_flight.close(&call.id), "a call is answered once");
                    model.open.retain(|open| !Arc::ptr_eq(open, &call));
                    model.cancelled.retain(|id| *id != call.id);
                }
                Event::Gone => {
                    in_flight.server_gone(|| Failure::SERVER_GONE);
                    model.reap(|ending| matches!(ending, Ending::Failed(_)));
                    prop_assert!(model.in_flight.is_empty());
                }
                _ => {}
            }
            prop_assert_eq!(in_flight.calls.len(), model.open.len());
            prop_assert_eq!(in_flight.attempts.len(), model.in_flight.len());
            prop_assert!(in_flight.progress.len() <= in_flight.attempts.len());
            prop_assert!(in_flight.late.attempts.len() <= LATE);
        }
    }
}

#[test]
fn what_is_remembered_of_given_up_attempts_is_bounded() {
    let mut in_flight = InFlight::new(PREFIX);
    let call = call(1, Some(1));
    in_flight.open(&call).unwrap();
    for _ in 0..LATE * 2 {
        let launched = in_flight.launch(&call, PendingAnswer::default(), base()).unwrap();
        in_flight.abandon(&launched.wire_id);
    }
    assert_eq!(in_flight.late.attempts.len(), LATE);
    assert!(in_flight.late.tokens.len() <= LATE / 64);
    assert!(in_flight.attempts.is_empty() && in_flight.progress.is_empty());
}
