//! A model that answers in pieces, an agent that reads them, and their session.
use bytes::Bytes;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use std::{
    fs,
    future::poll_fn,
    mem,
    path::Path,
    sync::{Arc, Mutex},
    task::Poll,
};
use tower::{Service, ServiceBuilder, service_fn};
use tr_core::BoxError;
use tr_integrity::{
    Checkpoint, Chunks, CycleMode, Format, Message, ModelCall, ModelGuardLayer, Operation,
    Sessions, WatchedBody,
};

pub(crate) use crate::common::MODES;
pub(crate) type Pieces = BoxStream<'static, Result<Bytes, BoxError>>;

/// An answer of the corpus.
pub(crate) fn answer(name: &str) -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tr-transcript/tests/data/answers");
    fs::read_to_string(data.join(name)).unwrap()
}

/// Answers of the corpus in this folder whose names begin so.
pub(crate) fn answers(folder: &str, name: &str) -> Vec<(String, String)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tr-transcript/tests/data/answers");
    let files = fs::read_dir(data.join(folder)).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|file| file.starts_with(name)).collect();
    names.sort();
    assert!(!names.is_empty(), "{folder}/{name}");
    names.into_iter().map(|file| (file.clone(), answer(&format!("{folder}/{file}")))).collect()
}

pub(crate) fn cut(text: &str, size: usize) -> Vec<Bytes> {
    text.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect()
}

/// A stream of these pieces, for each of which somebody has to wait.
pub(crate) fn slowly(pieces: Vec<Result<Bytes, BoxError>>) -> Pieces {
    let wait = |piece| async {
        let mut is_here = false;
        poll_fn(|cx| {
            if mem::replace(&mut is_here, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        piece
    };
    stream::iter(pieces).then(wait).boxed()
}

pub(crate) fn pieces(pieces: &[Bytes]) -> Pieces {
    slowly(pieces.iter().cloned().map(Ok).collect())
}

/// The guard around a model that answers once.
pub(crate) fn guarded(
    sessions: &Sessions,
    answer: Pieces,
) -> impl Service<ModelCall, Response = WatchedBody<Pieces>, Error = BoxError> {
    let answer = Arc::new(Mutex::new(Some(answer)));
    ServiceBuilder::new().layer(ModelGuardLayer::streamed(sessions.clone())).service(service_fn(
        move |_: ModelCall| {
            let answer = Chunks(answer.lock().unwrap().take().expect("called once"));
            async { Ok::<_, BoxError>(answer) }
        },
    ))
}

pub(crate) fn message(format: Format, role: &str, text: &str) -> Message {
    let raw = match format {
        Format::Gemini => {
            let role = if role == "assistant" { "model" } else { role };
            format!(r#"{{"role":"{role}","parts":[{{"text":"{text}"}}]}}"#)
        }
        _ => format!(r#"{{"role":"{role}","content":"{text}"}}"#),
    };
    format.read(raw).unwrap()
}

pub(crate) fn sessions(format: Format, mode: CycleMode) -> Sessions {
    let sessions = Sessions::builder(format).mode(mode).build().unwrap();
    sessions.with("s", |session, _| session.push(message(format, "user", "go")));
    sessions
}

/// The call that sends the session as it is.
pub(crate) fn call(sessions: &Sessions) -> ModelCall {
    ModelCall::new("s", json(sessions))
}

pub(crate) fn json(sessions: &Sessions) -> String {
    sessions.with("s", |session, _| session.transcript().to_json())
}

/// What the session is, hash by hash.
pub(crate) fn state(sessions: &Sessions) -> (String, Box<str>) {
    let hash = sessions
        .with("s", |session, now| session.clone().checkpoint(Operation::Manual, now).content_hash);
    (json(sessions), hash)
}

/// The session is as it was, and no call is on its way in it.
pub(crate) fn assert_rolled_back(sessions: &Sessions, before: &(String, Box<str>)) {
    assert_eq!(&state(sessions), before);
    sessions.with("s", |session, _| {
        assert_eq!(session.active(), None);
        assert!(session.checkpoints().iter().all(Checkpoint::is_committed));
    });
}

pub(crate) fn assert_committed(sessions: &Sessions) {
    sessions.with("s", |session, _| {
        assert_eq!(session.active(), None);
        assert!(session.latest().unwrap().is_committed());
    });
}
