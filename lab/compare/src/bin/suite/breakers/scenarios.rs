//! What a breaker is needed for, one scenario each.
use super::{
    Circuit, Rules, SUBJECTS, Subject, Trip,
    acts::{self, COOLDOWN, LONG},
};
use crate::{
    cell::{Cell, Row, Section},
    tasks::{paused, real},
};
use futures_util::future::{LocalBoxFuture, join_all};
use std::{io, time::Duration};

struct Scenario {
    need: &'static str,
    rules: Rules,
    clock: Clock,
    run: fn(Circuit) -> LocalBoxFuture<'static, Cell>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    Real,
    Paused,
}

const fn rules(trip: Trip, probes: u32) -> Rules {
    Rules { trip, cooldown: COOLDOWN, probes, shared: false }
}

const IN_A_ROW: Rules = rules(Trip::InARow(5), 1);
const WINDOW: Duration = Duration::from_millis(300);

const SCENARIOS: &[Scenario] = &[
    Scenario {
        need: "after 100,000 successes, it opens when half of the last 100 calls have failed",
        rules: Rules { cooldown: LONG, ..rules(Trip::HalfOf(100), 1) },
        clock: Clock::Real,
        run: |circuit| Box::pin(acts::after_many_successes(circuit)),
    },
    Scenario {
        need: "a tool that hangs opens it, with the timeout inside",
        rules: IN_A_ROW,
        clock: Clock::Real,
        run: |circuit| Box::pin(acts::hanging(circuit)),
    },
    Scenario {
        need: "callers that give up, by a timeout around it, don't open it",
        rules: IN_A_ROW,
        clock: Clock::Real,
        run: |circuit| Box::pin(acts::given_up(circuit)),
    },
    Scenario {
        need: "half open, it lets 1 of 100 concurrent calls through",
        rules: IN_A_ROW,
        clock: Clock::Real,
        run: |circuit| Box::pin(acts::crowd(circuit)),
    },
    Scenario {
        need: "probes that their callers cancel don't block it",
        rules: IN_A_ROW,
        clock: Clock::Real,
        run: |circuit| Box::pin(acts::cancelled_probes(circuit)),
    },
    Scenario {
        need: "a probe that never ends doesn't block it for ever",
        rules: IN_A_ROW,
        clock: Clock::Real,
        run: |circuit| Box::pin(acts::hung_probe(circuit)),
    },
    Scenario {
        need: "a failure of a call from before it opened doesn't reopen it while a probe runs",
        rules: IN_A_ROW,
        clock: Clock::Real,
        run: |circuit| Box::pin(acts::stale_failure(circuit)),
    },
    Scenario {
        need: "a success of a call from before it opened doesn't close it while a probe runs",
        rules: IN_A_ROW,
        clock: Clock::Real,
        run: |circuit| Box::pin(acts::stale_success(circuit)),
    },
    Scenario {
        need: "after an outage, a tool that is well and says no to all closes it",
        rules: IN_A_ROW,
        clock: Clock::Real,
        run: |circuit| Box::pin(acts::answered(circuit)),
    },
    Scenario {
        need: "open, it refuses although its service is not ready",
        rules: IN_A_ROW,
        clock: Clock::Real,
        run: |circuit| Box::pin(acts::not_ready(circuit)),
    },
    Scenario {
        need: "with a window of 300 ms and 2 probes, probes 500 ms apart close it",
        rules: rules(Trip::HalfWithin(WINDOW), 2),
        clock: Clock::Real,
        run: |circuit| Box::pin(acts::probes_apart(circuit)),
    },
    Scenario {
        need: "one layer around two services is one circuit",
        rules: IN_A_ROW,
        clock: Clock::Real,
        run: |circuit| Box::pin(acts::applied_twice(circuit)),
    },
    Scenario {
        need: "the same, if it is built with `build_with_handle`",
        rules: Rules { shared: true, ..IN_A_ROW },
        clock: Clock::Real,
        run: |circuit| Box::pin(acts::applied_twice(circuit)),
    },
    Scenario {
        need: "a test drives its cooldown by tokio's paused time",
        rules: Rules { cooldown: LONG, ..IN_A_ROW },
        clock: Clock::Paused,
        run: |circuit| Box::pin(acts::by_paused_time(circuit)),
    },
];

/// Runs all of them, the subjects of each at the same time.
pub(crate) fn section() -> io::Result<Section> {
    let mut rows = Vec::new();
    for scenario in SCENARIOS {
        let clock = if scenario.clock == Clock::Paused { paused()? } else { real()? };
        let one = async |subject: &Subject| match (subject.make)(&scenario.rules) {
            Ok(circuit) => (scenario.run)(circuit).await,
            Err(why) => Cell::Without(why),
        };
        let cells = clock.block_on(join_all(SUBJECTS.iter().map(one)));
        rows.push(Row { need: scenario.need, cells });
    }
    Ok(Section {
        title: "Breakers",
        setting: "Five failures in a row open each, one success closes it, unless the row says otherwise.",
        subjects: SUBJECTS.iter().map(|subject| subject.name).collect(),
        rows,
        notes: NOTES,
    })
}

const NOTES: &str = "\
None of the four counts a call that its caller gave up. That is our choice, too: a caller that disconnects says nothing
about the tool. So the timeout belongs inside, where the documentation of tower-resilience and ours put it and where
all four count it. tower-resilience reserves its probes, returns the permits of cancelled ones, and shares one circuit
between services if it is built with `build_with_handle`. failsafe closes at the first success. recloser has rates
only, five of five here, and evaluates them when its ring is full: until then it lets all calls through, and the end of a
call from before it opened is one of several results.
";
