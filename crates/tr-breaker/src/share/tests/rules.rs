//! Cases of "Which decision holds" (`share.rs`): the later decision about a breaker holds, except over an operator's
//! order that its process has not read.
//!
//! `World` (`../tests.rs`) models three processes and one Redis. `Step::Fail(1, 0)`: in process 1,
//! a call of the breaker `NAMES[0]` fails, and the breaker opens. `World::sync` runs one round of a
//! process: it reads, then publishes.
use super::{Network, PROCESSES, Step, World, within};
use crate::{Mode, decision::State};
use std::time::Duration;
use tokio::time::advance;

fn sync_all(world: &mut World) {
    (0..PROCESSES).for_each(|process| world.sync(process, Network::Delivered));
}

#[test]
fn the_later_decision_holds_that_was_published_first() {
    within(async {
        let mut world = World::new();
        world.step(Step::Fail(0, 0)).await;
        advance(Duration::from_secs(5)).await;
        // Process 1 decides later and publishes first.
        world.step(Step::Fail(1, 0)).await;
        world.sync(1, Network::Delivered);
        advance(Duration::from_secs(1)).await;
        world.step(Step::Reset(1, 0)).await;
        world.sync(1, Network::Delivered);
        sync_all(&mut world);
        assert_eq!(world.views("one"), [(State::Closed, Mode::Enforce); PROCESSES]);
    });
}

#[test]
fn the_later_decision_holds_that_was_published_last() {
    within(async {
        let mut world = World::new();
        world.step(Step::Fail(1, 0)).await;
        world.sync(1, Network::Lost);
        // Process 0 decides earlier and publishes first.
        world.step(Step::Fail(0, 0)).await;
        world.sync(0, Network::Delivered);
        advance(Duration::from_secs(5)).await;
        world.step(Step::Reset(1, 0)).await;
        sync_all(&mut world);
        world.sync(0, Network::Delivered);
        assert_eq!(world.views("one"), [(State::Closed, Mode::Enforce); PROCESSES]);
    });
}

#[test]
fn an_operator_order_wins_over_an_opened_breaker() {
    within(async {
        let mut world = World::new();
        world.step(Step::Force(1, 0)).await;
        advance(Duration::from_secs(5)).await;
        // Process 0 has not read the order. It opens later and publishes first.
        world.step(Step::Fail(0, 0)).await;
        world.sync(0, Network::Delivered);
        sync_all(&mut world);
        world.sync(0, Network::Delivered);
        assert_eq!(world.views("one"), [(State::Forced, Mode::Enforce); PROCESSES]);
    });
}

#[test]
fn a_process_that_has_not_read_an_order_cannot_undo_it() {
    within(async {
        let mut world = World::new();
        world.step(Step::Force(0, 0)).await;
        world.sync(0, Network::Delivered);
        advance(Duration::from_secs(5)).await;
        // Process 1 has not read the order.
        world.step(Step::Fail(1, 0)).await;
        world.step(Step::Reset(1, 0)).await;
        sync_all(&mut world);
        assert_eq!(world.views("one"), [(State::Forced, Mode::Enforce); PROCESSES]);
        // Process 1 has read it now, so its reset counts.
        world.step(Step::Reset(1, 0)).await;
        world.sync(1, Network::Delivered);
        sync_all(&mut world);
        assert_eq!(world.views("one"), [(State::Closed, Mode::Enforce); PROCESSES]);
    });
}

#[test]
fn after_redis_loses_its_data_the_highest_known_epoch_wins() {
    within(async {
        let mut world = World::new();
        world.step(Step::Fail(0, 0)).await;
        sync_all(&mut world);
        advance(Duration::from_secs(1)).await;
        // Process 2 does not sync.
        world.step(Step::Reset(0, 0)).await;
        world.sync(0, Network::Delivered);
        world.sync(1, Network::Delivered);
        world.step(Step::LoseData).await;
        world.sync(2, Network::Delivered);
        sync_all(&mut world);
        world.sync(2, Network::Delivered);
        assert_eq!(world.views("one"), [(State::Closed, Mode::Enforce); PROCESSES]);
    });
}
