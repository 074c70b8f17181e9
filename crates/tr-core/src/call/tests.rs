//! Calls, their copies and what is computed of them.
use super::*;

#[test]
fn an_undeclared_tool_is_mutating() {
    let call = ToolCall::new("x", Params::empty_object());
    assert_eq!(call.parts().effect, Effect::Mutating);
    assert!(!call.parts().effect_declared);
}

#[test]
fn changing_a_clone_leaves_the_original_and_shares_the_params() {
    let call = ToolCall::new("x", Params::empty_object());
    let other = call.clone().session("s");
    assert_eq!(call.parts().context.session, None);
    assert!(call.parts().params.ptr_eq(&other.parts().params));
}

#[test]
fn a_claim_is_known_to_its_copy_only_and_attempts_to_all() {
    use crate::canonical::Key;
    let fence = |epoch| FencingToken { key: Key::from_bytes([1; 32]), epoch };
    let call = ToolCall::new("x", Params::empty_object()).idempotency_key("k");
    let (mut first, mut second) = (call.clone(), call.clone());
    first.set_fencing_token(fence(1));
    second.set_fencing_token(fence(2));
    second.set_fencing_token(fence(3));
    let changed = second.clone().session("s");
    let epochs = [&call, &first, &second, &changed].map(|it| it.fencing_token().map(|it| it.epoch));
    assert_eq!(epochs, [None, Some(1), Some(3), Some(3)]);
    assert!(call.parts().params.ptr_eq(&second.parts().params));
    assert_eq!(first.id(), call.id());
    second.note_attempt();
    assert!(call.had_attempt() && first.had_attempt());
}

#[test]
fn a_clone_that_is_called_by_itself_has_its_own_attempts() {
    let first = ToolCall::new("x", Params::empty_object()).idempotency_key("k");
    let mut second = first.clone();
    second.set_unattempted();
    let id = first.id().unwrap();
    first.note_attempt();
    assert!(first.had_attempt() && !second.had_attempt());
    second.clone().note_attempt();
    assert!(second.had_attempt());
    assert_eq!(second.id().unwrap(), id);
    second.set_unattempted();
    assert!(!second.had_attempt());
    assert!(first.parts().params.ptr_eq(&second.parts().params));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "an instant to count from; no time passes here")]
fn less_time_makes_no_other_call() {
    let now = Instant::now();
    let whole = now + std::time::Duration::from_secs(9);
    let call = ToolCall::new("x", Params::empty_object()).idempotency_key("k").deadline(whole);
    let mut bounded = call.clone();
    bounded.set_deadline(now);
    let deadlines = [&call, &bounded].map(|call| call.parts().deadline);
    assert_eq!(deadlines, [Some(whole), Some(now)]);
    assert_eq!(bounded.id(), call.id());
    bounded.note_attempt();
    assert!(call.had_attempt());
}

#[test]
fn debug_shows_neither_params_nor_key() {
    let params = Params::from_text(r#"{"password":"hunter2"}"#).unwrap();
    let shown = format!("{:?}", ToolCall::new("x", params).idempotency_key("order-hunter2"));
    assert!(!shown.contains("hunter2"), "{shown}");
}
