//! Which decision holds, case by case.
use super::{Fate, PROCESSES, Step, World, within};
use crate::{Mode, decision::State};
use std::time::Duration;
use tokio::time::advance;

#[test]
fn the_later_decision_holds() {
    within(async {
        let mut world = World::new();
        world.step(Step::Fail(0, 0)).await;
        advance(Duration::from_secs(5)).await;
        // Later, and told first.
        world.step(Step::Fail(1, 0)).await;
        world.turn(1, Fate::Fine);
        advance(Duration::from_secs(1)).await;
        world.step(Step::Reset(1, 0)).await;
        world.turn(1, Fate::Fine);
        (0..PROCESSES).for_each(|process| world.turn(process, Fate::Fine));
        assert_eq!(world.views("one"), [(State::Closed, Mode::Enforce); PROCESSES]);
        // Earlier, and told first.
        world.step(Step::Fail(0, 0)).await;
        advance(Duration::from_secs(5)).await;
        world.step(Step::Force(1, 0)).await;
        world.turn(0, Fate::Fine);
        (0..PROCESSES).for_each(|process| world.turn(process, Fate::Fine));
        world.turn(0, Fate::Fine);
        assert_eq!(world.views("one"), [(State::Forced, Mode::Enforce); PROCESSES]);
    });
}

#[test]
fn an_order_is_undone_only_by_those_who_know_of_it() {
    within(async {
        let mut world = World::new();
        world.step(Step::Force(0, 0)).await;
        world.turn(0, Fate::Fine);
        advance(Duration::from_secs(5)).await;
        // It has heard nothing of that.
        world.step(Step::Fail(1, 0)).await;
        world.step(Step::Reset(1, 0)).await;
        (0..PROCESSES).for_each(|process| world.turn(process, Fate::Fine));
        assert_eq!(world.views("one"), [(State::Forced, Mode::Enforce); PROCESSES]);
        // Now it has.
        world.step(Step::Reset(1, 0)).await;
        world.turn(1, Fate::Fine);
        (0..PROCESSES).for_each(|process| world.turn(process, Fate::Fine));
        assert_eq!(world.views("one"), [(State::Closed, Mode::Enforce); PROCESSES]);
    });
}

#[test]
fn a_redis_that_forgets_is_told_by_those_who_know_most() {
    within(async {
        let mut world = World::new();
        world.step(Step::Fail(0, 0)).await;
        (0..PROCESSES).for_each(|process| world.turn(process, Fate::Fine));
        advance(Duration::from_secs(1)).await;
        // The last one does not hear of it.
        world.step(Step::Reset(0, 0)).await;
        world.turn(0, Fate::Fine);
        world.turn(1, Fate::Fine);
        world.step(Step::Empty).await;
        world.turn(2, Fate::Fine);
        (0..PROCESSES).for_each(|process| world.turn(process, Fate::Fine));
        world.turn(2, Fate::Fine);
        assert_eq!(world.views("one"), [(State::Closed, Mode::Enforce); PROCESSES]);
    });
}
