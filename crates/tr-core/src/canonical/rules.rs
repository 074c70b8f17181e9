//! What of a text does not count: dropped members, loosely compared strings.
use super::Pointer;
use crate::{ConfigError, setters};

/// Top-level members of params that say how a call travels, not what it asks for.
pub const VOLATILE: [&str; 5] = ["clientTs", "retryCount", "traceparent", "tracestate", "baggage"];

/// What of a text does not count. The default, meant for params, drops [`VOLATILE`] members.
///
/// Whatever is dropped must still be well-formed: rules never make an invalid text valid.
///
/// ```
/// use tr_core::canonical::{Digest, Rules};
///
/// let rules = Rules::builder()
///     .drop_at("/meta/sentAt".parse()?)
///     .loose_whitespace_at("/query".parse()?)
///     .build()?;
/// assert_eq!(
///     Digest::of_params(r#"{"query": " a  b", "meta": {"sentAt": 7}, "retryCount": 1}"#, &rules)?,
///     Digest::of_params(r#"{"meta": {}, "query": "a b"}"#, &rules)?,
/// );
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub(super) root: Node,
    volatile: Volatile,
}

/// Whether [`VOLATILE`] members count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Volatile {
    /// Not, except in [own params](Rules::for_own_params).
    #[default]
    Default,
    Dropped,
    Included,
}

/// Configures [`Rules`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    volatile: Volatile,
    dropped: Vec<Pointer>,
    loose: Vec<Pointer>,
}

/// The pointers as a tree, walked along with the text.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    dropped: bool,
    loose: bool,
    children: Vec<Child>,
}

#[derive(Clone, Debug)]
struct Child {
    token: Box<str>,
    /// The token as a place in an array, if it is one.
    index: Option<usize>,
    node: Node,
}

/// Where the reader stands in the tree, if still inside.
#[derive(Clone, Copy)]
pub(super) struct Place<'r> {
    node: Option<&'r Node>,
    pub(super) dropped: bool,
    pub(super) loose: bool,
    /// Whether [`VOLATILE`] members of this object are dropped.
    drops_volatile: bool,
}

impl Rules {
    /// Everything counts: plain canonical JSON.
    #[must_use]
    pub const fn exact() -> Self {
        let root = Node { dropped: false, loose: false, children: Vec::new() };
        Self { root, volatile: Volatile::Included }
    }

    /// The same rules for params that are all the tool's own, as over MCP: [`VOLATILE`] members count,
    /// unless [`drop_volatile`](Builder::drop_volatile) says otherwise.
    #[must_use]
    pub fn for_own_params(&self) -> Self {
        let volatile = match self.volatile {
            Volatile::Default => Volatile::Included,
            said => said,
        };
        Self { root: self.root.clone(), volatile }
    }

    /// Whether [`VOLATILE`] members count, as [`keep_volatile`](Builder::keep_volatile) says.
    #[must_use]
    pub fn keeps_volatile(&self) -> bool {
        self.volatile == Volatile::Included
    }

    /// Starts from the default.
    pub const fn builder() -> Builder {
        Builder { volatile: Volatile::Default, dropped: Vec::new(), loose: Vec::new() }
    }
}

impl Builder {
    setters! {
        /// Makes [`VOLATILE`] members count, for a tool whose own parameter has such a name.
        fn keep_volatile() { volatile = Volatile::Included }

        /// Drops [`VOLATILE`] members also from [params that are all the tool's own](Rules::for_own_params).
        fn drop_volatile() { volatile = Volatile::Dropped }

        /// Drops the member or array element at `pointer`.
        fn drop_at(pointer: Pointer) { dropped.push(pointer) }

        /// Compares strings at and below `pointer` without regard to how much white space (Unicode's)
        /// separates their words or surrounds them. Names of members stay exact.
        fn loose_whitespace_at(pointer: Pointer) { loose.push(pointer) }
    }

    /// Validates the configuration; this is the only place it can fail.
    ///
    /// # Errors
    /// If a pointer to drop names the whole document.
    pub fn build(self) -> Result<Rules, ConfigError> {
        let drops_all = self.dropped.iter().any(Pointer::is_root);
        let fault = drops_all.then(|| "a pointer to drop names the whole document".to_owned());
        ConfigError::check("canonical form", fault.into_iter().collect())?;
        let mut rules = Rules { root: Node::default(), volatile: self.volatile };
        self.dropped.iter().for_each(|pointer| rules.root.at(pointer).dropped = true);
        self.loose.iter().for_each(|pointer| rules.root.at(pointer).loose = true);
        Ok(rules)
    }
}

impl Node {
    fn at(&mut self, pointer: &Pointer) -> &mut Self {
        pointer.tokens().fold(self, Self::child)
    }

    fn child(&mut self, token: &str) -> &mut Self {
        let known = self.children.iter().position(|child| *child.token == *token);
        let at = known.unwrap_or_else(|| {
            let index = token.parse().ok().filter(|index: &usize| index.to_string() == token);
            self.children.push(Child { token: token.into(), index, node: Self::default() });
            self.children.len() - 1
        });
        &mut self.children[at].node
    }
}

impl<'r> Place<'r> {
    pub(super) fn root(rules: &'r Rules) -> Self {
        let node = &rules.root;
        let drops_volatile = rules.volatile != Volatile::Included;
        Self { node: Some(node), dropped: false, loose: node.loose, drops_volatile }
    }

    /// The member whose name `is_it` recognizes.
    #[inline]
    pub(super) fn member(self, is_it: impl Fn(&str) -> bool) -> Self {
        let is_volatile = self.drops_volatile && VOLATILE.iter().any(|known| is_it(known));
        let place = self.find(|child| is_it(&child.token));
        Self { dropped: place.dropped || is_volatile, ..place }
    }

    #[inline]
    pub(super) fn element(self, index: usize) -> Self {
        self.find(|child| child.index == Some(index))
    }

    #[inline]
    fn find(self, is: impl Fn(&Child) -> bool) -> Self {
        match self.node.and_then(|node| node.children.iter().find(|child| is(child))) {
            Some(Child { node, .. }) => {
                let loose = self.loose || node.loose;
                Self { node: Some(node), dropped: node.dropped, loose, drops_volatile: false }
            }
            None => Self { node: None, dropped: false, loose: self.loose, drops_volatile: false },
        }
    }
}
