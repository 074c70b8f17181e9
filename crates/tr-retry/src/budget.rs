//! A bound on retries as a share of successes.
use crate::bucket::{Bucket, TOKEN};
use std::sync::Arc;
use tr_policy::{
    ConfigError,
    internal::{Faults, STRIPES, stripe},
    setters,
};

/// A bound on retries as a share of successes, shared by all layers that are given a clone.
///
/// A token bucket: each retry takes one token, each successful call adds a part of one, up to the
/// capacity. In an outage no tokens are added, so retries end once the bucket is empty: the tool
/// gets little more than one attempt for each call.
///
/// The bucket starts full and uses no clock and no lock. A retry that is dropped before it starts
/// returns its token.
///
/// ```
/// use tr_retry::{Budget, RetryLayer};
///
/// let payments = Budget::builder().per_success(0.2).capacity(10).build()?;
/// let charge = RetryLayer::builder().budget(payments.clone()).build()?;
/// let refund = RetryLayer::builder().budget(payments).build()?;
/// # Ok::<_, tr_retry::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Budget(Arc<Bucket<STRIPES>>);

/// Configures a [`Budget`].
#[derive(Clone, Debug)]
#[must_use]
pub struct BudgetBuilder {
    per_success: f64,
    capacity: u32,
}

impl Budget {
    /// Starts from the defaults: 0.1 tokens per success, a capacity of 20.
    pub const fn builder() -> BudgetBuilder {
        BudgetBuilder { per_success: 0.1, capacity: 20 }
    }

    /// How many retries the budget allows now.
    #[must_use]
    pub fn available(&self) -> u64 {
        self.0.balance() / TOKEN
    }

    /// Counts a success.
    #[inline]
    pub(crate) fn success(&self) {
        self.0.success(stripe());
    }

    /// Takes a token, if there is one.
    pub(crate) fn withdraw(&self) -> Option<RetryToken> {
        self.0.take().then(|| RetryToken { budget: self.clone(), spent: false })
    }
}

/// A token for one retry; returned to the bucket if it is dropped unspent.
#[derive(Debug)]
pub(crate) struct RetryToken {
    budget: Budget,
    spent: bool,
}

impl RetryToken {
    pub(crate) fn spend(mut self) {
        self.spent = true;
    }
}

impl Drop for RetryToken {
    fn drop(&mut self) {
        if !self.spent {
            self.budget.0.put_back();
        }
    }
}

impl BudgetBuilder {
    setters! {
        /// Sets how many retries each success pays for: 0 to 10, 0.1 by default.
        fn per_success(tokens: f64) { per_success = tokens }

        /// Sets how many tokens the bucket holds at most, and at the start: 1 to
        /// 1,000,000, 20 by default.
        fn capacity(tokens: u32) { capacity = tokens }
    }

    /// Builds the budget.
    ///
    /// # Errors
    /// If settings are out of range; the error names every one.
    pub fn build(self) -> Result<Budget, ConfigError> {
        let mut faults = Faults::default();
        faults.check(
            "per_success",
            self.per_success,
            (0.0..=10.0).contains(&self.per_success),
            "0 to 10",
        );
        faults.range("capacity", self.capacity, 1..=1_000_000);
        faults.into_result("retry")?;
        let per_success = (self.per_success * TOKEN as f64).round() as u64;
        Ok(Budget(Arc::new(Bucket::new(per_success, u64::from(self.capacity) * TOKEN))))
    }
}

tr_policy::debug_parts! { Budget, |it| available = it.available() }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_is_not_spent_goes_back() {
        let budget = Budget::builder().capacity(1).build().unwrap();
        drop(budget.withdraw().unwrap());
        budget.withdraw().unwrap().spend();
        assert!(budget.withdraw().is_none());
    }

    #[test]
    fn it_holds_its_rate_where_towers_tps_budget_of_0_6_grants_all() {
        let budget = Budget::builder().per_success(0.6).capacity(10).build().unwrap();
        let granted = (0..1_000).filter(|_| {
            budget.success();
            budget.withdraw().map(RetryToken::spend).is_some()
        });
        // Ten from the start; the first success finds it full.
        assert_eq!(granted.count(), 10 + 599);
    }

    #[test]
    fn what_overflows_is_lost() {
        let budget = Budget::builder().per_success(1.0).capacity(3).build().unwrap();
        (0..1_000).for_each(|_| budget.success());
        assert_eq!(budget.available(), 3);
    }

    #[test]
    fn all_faults_at_once() {
        let error = Budget::builder().per_success(f64::NAN).capacity(0).build().unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid retry configuration: `per_success` is NaN, must be 0 to 10; `capacity` is 0, must be 1 to 1000000"
        );
    }
}
