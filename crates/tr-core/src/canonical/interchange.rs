//! The key formula of systems that came before, to find records that they wrote.
//!
//! ```
//! use tr_core::canonical::{Rules, interchange::SeedKey};
//!
//! let key = SeedKey { namespace: "shop", tool: "order", session: "s1", actor: "ada" };
//! assert_eq!(
//!     key.derive(r#"{"n": 1.0, "retryCount": 2}"#, &Rules::default())?,
//!     "bf896f135a7c2302c14d8889a49064fff4edcfc0086354d0e5afa85d45a24f0e",
//! );
//! # Ok::<_, tr_core::canonical::Error>(())
//! ```
use super::{Canonicalizer, Error, Rules};
use sha2::{Digest as _, Sha256};

/// `sha256(namespace :: tool :: canonical params :: session :: actor)`.
///
/// The joint is ambiguous: session `a::b` of actor `c` and session `a` of actor `b::c` share all
/// their keys. [`Key::derive`](super::Key::derive) keeps them apart; use this one for interchange
/// only, where names are known to hold no `::`.
#[derive(Clone, Copy, Debug)]
pub struct SeedKey<'a> {
    /// The tool's namespace.
    pub namespace: &'a str,
    /// The tool's name.
    pub tool: &'a str,
    /// The session.
    pub session: &'a str,
    /// The user or account.
    pub actor: &'a str,
}

impl SeedKey<'_> {
    /// The key for these params, in 64 hexadecimal digits.
    ///
    /// # Errors
    /// If `params` has no canonical form.
    pub fn derive(&self, params: impl AsRef<[u8]>, rules: &Rules) -> Result<String, Error> {
        let mut joined = format!("{}::{}::", self.namespace, self.tool).into_bytes();
        Canonicalizer::new().write(params, rules, &mut joined)?;
        joined.extend_from_slice(format!("::{}::{}", self.session, self.actor).as_bytes());
        Ok(Sha256::digest(joined).iter().map(|byte| format!("{byte:02x}")).collect())
    }
}
