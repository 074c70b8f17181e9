//! The checks.
use super::{Lease, bugs, laws};
use stateright::{Checker, HasDiscoveries, Model};
use tr_testkit::rounds;

const LEASE: Lease = Lease {
    mutating: true,
    callers: 3,
    faults: 2,
    replicated: false,
    waits_for_replica: false,
    counted_epochs: false,
    clock_jumps: false,
    law: None,
    bug: None,
};

/// Few faults in every run, one more in a soak.
fn faults(few: u8) -> u8 {
    rounds(few.into(), u64::from(few) + 1) as u8
}

/// Goes through all states. Gives back the laws that are broken, and requires that all that ought
/// to happen somewhere does.
fn broken(lease: &Lease) -> Vec<&'static str> {
    let checker = lease.clone().checker().threads(2).spawn_bfs().join();
    println!("{} states of {lease:?}", checker.unique_state_count());
    let found = checker.discoveries();
    let mut broken = Vec::new();
    for property in lease.properties() {
        let path = found.get(property.name).map(|path| path.clone().into_actions());
        if !property.expectation.discovery_is_failure() {
            assert!(path.is_some(), "it never happens that {}", property.name);
        } else if let Some(path) = path {
            println!("broken: {}, by {path:?}", property.name);
            broken.push(property.name);
        }
    }
    broken
}

const NONE: [&str; 0] = [];

#[test]
fn the_laws_hold_for_mutating_calls() {
    assert_eq!(broken(&Lease { faults: faults(2), ..LEASE }), NONE);
}

#[test]
fn the_laws_hold_for_all_other_calls() {
    let lease = Lease { mutating: false, callers: 2, ..LEASE };
    assert_eq!(broken(&Lease { faults: faults(2), ..lease }), NONE);
}

#[test]
fn a_clock_that_jumps_shortens_leases_and_runs_nothing_twice() {
    let lease = Lease { clock_jumps: true, callers: 2, ..LEASE };
    assert_eq!(broken(&Lease { faults: faults(2), ..lease }), [laws::KEPT]);
}

#[test]
fn a_replica_that_may_lag_loses_claims_and_ends_when_it_takes_over() {
    let lease = Lease { replicated: true, callers: 2, faults: faults(1), ..LEASE };
    assert_eq!(broken(&lease), [laws::ONCE, laws::KEPT, laws::DONE_STAYS]);
}

#[test]
fn epochs_that_a_store_counts_repeat_themselves_after_a_failover() {
    let lease = Lease { replicated: true, callers: 2, faults: faults(1), ..LEASE };
    let counted = Lease { counted_epochs: true, law: Some(laws::EPOCHS_GROW), ..lease };
    assert_eq!(broken(&counted), [laws::EPOCHS_GROW]);
    assert_eq!(broken(&Lease { counted_epochs: false, ..counted }), NONE);
}

#[test]
fn who_waits_for_the_replica_loses_nothing() {
    let lease = Lease { replicated: true, waits_for_replica: true, callers: 2, ..LEASE };
    for counted_epochs in [false, true] {
        assert_eq!(broken(&Lease { counted_epochs, faults: faults(2), ..lease.clone() }), NONE);
    }
}

#[test]
fn each_mistake_is_found() {
    for (bug, law) in bugs::ALL {
        let lease = Lease { bug: Some(bug), law: Some(law), ..LEASE };
        let checker = lease.checker().finish_when(HasDiscoveries::Any).spawn_bfs().join();
        let path = checker.discovery(law).unwrap_or_else(|| panic!("{bug:?} keeps: {law}"));
        println!("{bug:?} breaks: {law}: {:?}", path.into_actions());
    }
}
