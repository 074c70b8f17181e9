//! The recording of responses.
use super::as_json::AsJson;
use crate::{Adapted, NamedPolicy, Replay};
use serde::{Serialize, de::DeserializeOwned};
use tr_policy::policy::{
    DedupeKeyBy, EffectBy, JudgeError, JudgeResponse, KeyBy, StoredAsJson, WithEffect,
};

/// How a response is recorded and replayed. Apart from [`ResponsePolicy`](super::ResponsePolicy),
/// since what is kept must be `Clone` and `Send`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not define how to record a `{Res}`",
    label = "no `StoreResponse<{Res}>` here",
    note = "write `impl tr_core::StoreResponse<{Res}> for {Self}` beside your response type",
    note = "or give the layer a policy that does: `.policy(NamedPolicy::new(\"my_tool\").stored_as_json())` (needs serde's impls), or, for a type of another crate, one of your own: `.policy(MyPolicy)`"
)]
pub trait StoreResponse<Res> {
    /// What is kept in the record.
    type Stored: Clone + Send + 'static;

    /// What to keep, or `None` if this answer cannot be kept (it streams).
    fn store(&self, res: &Res) -> Option<Self::Stored>;

    /// How many bytes of memory are kept with `stored`, so that records can be bounded by them. The
    /// size of the value itself by default.
    fn size_of(&self, stored: &Self::Stored) -> usize {
        std::mem::size_of_val(stored)
    }

    /// A failure in few words, to be kept where the whole is too large: its kind and its code, and
    /// the beginning of its message. `None` where there is none: a duplicate gets the code alone.
    fn shorten(&self, _stored: &Self::Stored) -> Option<Self::Stored> {
        None
    }

    /// The answer for a duplicate.
    fn load(&self, stored: Self::Stored, replay: Replay) -> Res;
}

/// A change that leaves recording as it is.
#[diagnostic::on_unimplemented(message = "`stored_as_json` needs a response with serde's impls")]
pub trait KeepsStored {}

impl KeepsStored for WithEffect {}
impl<F> KeepsStored for EffectBy<F> {}
impl<F> KeepsStored for KeyBy<F> {}
impl<F> KeepsStored for DedupeKeyBy<F> {}
impl<F> KeepsStored for JudgeResponse<F> {}
impl<F> KeepsStored for JudgeError<F> {}

impl<Res: AsRef<[u8]> + Clone + Send + 'static> StoreResponse<Res> for NamedPolicy {
    type Stored = Res;

    fn store(&self, res: &Res) -> Option<Res> {
        Some(res.clone())
    }

    fn size_of(&self, stored: &Res) -> usize {
        size_of::<Res>() + stored.as_ref().len()
    }

    fn load(&self, stored: Res, _: Replay) -> Res {
        stored
    }
}

impl<P: StoreResponse<Res>, C: KeepsStored, Res> StoreResponse<Res> for Adapted<P, C> {
    type Stored = P::Stored;

    #[inline]
    fn store(&self, res: &Res) -> Option<P::Stored> {
        self.policy().store(res)
    }

    #[inline]
    fn size_of(&self, stored: &P::Stored) -> usize {
        self.policy().size_of(stored)
    }

    #[inline]
    fn shorten(&self, stored: &P::Stored) -> Option<P::Stored> {
        self.policy().shorten(stored)
    }

    #[inline]
    fn load(&self, stored: P::Stored, replay: Replay) -> Res {
        self.policy().load(stored, replay)
    }
}

impl<P, Res> StoreResponse<Res> for Adapted<P, StoredAsJson>
where
    Res: Serialize + DeserializeOwned + Clone + Send + 'static,
{
    type Stored = AsJson<Res>;

    fn store(&self, res: &Res) -> Option<AsJson<Res>> {
        Some(AsJson(res.clone()))
    }

    fn size_of(&self, stored: &AsJson<Res>) -> usize {
        stored.size()
    }

    fn load(&self, stored: AsJson<Res>, _: Replay) -> Res {
        stored.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        CloneRequest, DefaultPolicy, Effect, MatchedOn, Params, PolicyExt, RequestPolicy,
        ResponsePolicy, ToolCall, ToolOutcome,
    };
    use std::time::Duration;

    #[test]
    fn what_is_not_changed_is_the_policy_s_own() {
        let policy = DefaultPolicy.read_only();
        let call = ToolCall::new("pay", Params::empty_object())
            .effect(Effect::Mutating)
            .actor("ada")
            .idempotency_key("k");
        assert_eq!(policy.effect(&call), Effect::ReadOnly);
        assert_eq!(policy.record(&call), DefaultPolicy.record(&call));
        assert_eq!(policy.params(&call), Some("{}"));
        assert_eq!(
            policy.clone_request(&call).map(|copy| copy.parts().effect),
            Some(Effect::Mutating)
        );
        let outcome = ToolOutcome::default();
        assert_eq!(policy.classify(Ok(&outcome)), DefaultPolicy.classify(Ok(&outcome)));
    }

    #[test]
    fn what_is_recorded_counts_with_all_its_bytes() {
        let policy = NamedPolicy::new("files");
        let text = "x".repeat(5_000);
        assert!(policy.size_of(&text) > 5_000);
        let kept = policy.store(&text).map(|kept| policy.size_of(&kept));
        assert_eq!(kept, Some(policy.size_of(&text)));
        let json = policy.stored_as_json().read_only();
        let kept = json.store(&vec![1_u32, 2, 3]).unwrap();
        assert_eq!(StoreResponse::<Vec<u32>>::size_of(&json, &kept), "[1,2,3]".len());
        let replay =
            Replay { matched_on: MatchedOn::Completed, age: Duration::ZERO, fingerprint: [0; 8] };
        assert_eq!(json.load(kept, replay), vec![1, 2, 3]);
    }
}
