//! Shapes that several sections use.
use std::borrow::Cow;
use tr_wire::{
    closest,
    read::{Faults, Node, shape},
};

/// The word for no limit.
pub(crate) const NONE: &str = "none";

shape! {
    /// A limit of shape `S`, or `"none"`.
    pub(crate) OrNone<S> => Option<S::Value>, format!("{}, or {NONE:?}", S::expected()),
    |node, faults| {
        if node.source.text().as_deref() == Some(NONE) {
            return Some(None);
        }
        // Its own faults would not say that there may be none.
        match S::read(node, &mut Faults::of("")) {
            Some(limit) => Some(Some(limit)),
            None => node.refuse(Self::expected(), faults),
        }
    },
    |generator| { "anyOf": [(S::schema(generator)), { "const": NONE }] }
}

/// Refuses an address by its scheme alone: what follows may hold a password.
pub(crate) fn refuse_scheme<T>(
    node: &Node<'_>,
    text: &str,
    expected: Cow<'static, str>,
    schemes: &[&'static str],
    faults: &mut Faults,
) -> Option<T> {
    let found = match text.split_once("://") {
        Some((scheme, _)) => format!("an address {scheme}://…"),
        None => "a text without one of these schemes".to_owned(),
    };
    let mut fault = node.fault(expected, found, faults);
    let scheme = text.split("://").next().unwrap_or_default();
    if let Some(like) = closest(scheme, schemes.iter().copied()) {
        fault = fault.hint(format!("did you mean {like}://?"));
    }
    faults.push(fault);
    None
}
