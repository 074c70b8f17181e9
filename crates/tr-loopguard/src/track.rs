//! Detects the signals of one turn: pure, of bounded size, and with bounded work for each call.
mod cycles;

use self::cycles::Cycles;
use crate::{
    Signals,
    call::{CallHash, End, ErrorHash, RequestedCall, Rule, Signal, Step, ToolHash},
};
use std::time::{Duration, Instant};

/// How many different calls are kept, the latest ones.
const CALLS: usize = 32;
/// How many failing tools are kept.
const TOOLS: usize = 8;

/// What a step means for earlier counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepChange {
    /// Nothing.
    None,
    /// This call ended differently than the last time.
    Changed,
    /// The call may have changed state.
    Progress,
}

/// The steps of one turn that are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Track {
    /// The latest call is the last.
    calls: Vec<TrackedCall>,
    tools: Vec<Failing>,
    cycles: Cycles,
    /// How often the model waited.
    waits: u32,
    /// When the last call ended.
    pub(crate) last: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct TrackedCall {
    call: CallHash,
    end: Option<u64>,
    failed: bool,
    /// Since when it ends like this, how often it was called since, and how often without a wait.
    since: Instant,
    looks: u32,
    hasty: u32,
    waits: u32,
    last: Instant,
    held: Option<ActiveRefusal>,
}

#[derive(Clone, Copy, Debug)]
struct Failing {
    tool: ToolHash,
    error: ErrorHash,
    last_call: CallHash,
    times: u32,
    last: Instant,
    held: Option<ActiveRefusal>,
}

impl Signals {
    /// Whether the model is warned of a signal now. Where nothing is refused, warnings get rarer
    /// with each doubling of the count.
    pub(crate) fn is_due(&self, signal: Signal, step: &Step) -> bool {
        let number = match signal.rule {
            Rule::Repeat if matches!(step.end, End::Failure(_)) => self.failing_repeats,
            Rule::Repeat => step.asked.repeats.unwrap_or(self.repeats),
            Rule::Cycle(_) => self.rounds,
            Rule::SameError => self.same_error,
            Rule::Quiet => return true,
        };
        let doubled = signal.count.is_multiple_of(number.max(1));
        self.refuse || doubled && (signal.count / number.max(1)).is_power_of_two()
    }
}

/// A refusal that stays in force.
#[derive(Clone, Copy, Debug)]
struct ActiveRefusal {
    signal: Signal,
    at: Instant,
}

impl Track {
    /// Why `asked` may not run. A refused call stays refused.
    pub(crate) fn admit(&mut self, signals: &Signals, asked: &RequestedCall) -> Option<Signal> {
        if let Some(tool) = self.tools.iter_mut().find(|tool| tool.tool == asked.tool) {
            let found = (tool.times >= signals.same_error.saturating_mul(2))
                .then_some(Signal { rule: Rule::SameError, count: tool.times });
            if let Some(signal) = hold(&mut tool.held, found, asked.at) {
                return Some(signal);
            }
        }
        let cycle = self.cycles.next_is(asked.call.0, signals.rounds.saturating_mul(2));
        let seen = self.calls.iter_mut().find(|seen| seen.call == asked.call)?;
        let found = || seen.signal(signals, asked, 2).or(cycle.map(around));
        let found = if asked.poll { None } else { found() };
        hold(&mut seen.held, found, asked.at)
    }

    /// Records a call's end: returns what it means for earlier counts, and the signal to warn of.
    pub(crate) fn record(
        &mut self,
        signals: &Signals,
        step: &Step,
    ) -> (StepChange, Option<Signal>) {
        let RequestedCall { call, tool, poll, at, .. } = step.asked;
        let pause = self.last.replace(at).map(|last| at.saturating_duration_since(last));
        let (end, failed, pending) = match step.end {
            End::Success { answer, pending } => (answer, false, pending),
            End::Failure(error) => (Some(error.0), true, false),
        };
        let waited = !failed && pause.is_some_and(|pause| pause >= signals.pace);
        self.waits = self.waits.wrapping_add(u32::from(waited));
        let haste = !poll && !pending && !waited;

        let (change, seen) = self.see(step, end, failed, haste);
        let repeat = if poll { None } else { seen.signal(signals, &step.asked, 1) };
        if change == StepChange::Progress || (change == StepChange::Changed && !failed) {
            self.forgive(call, at);
        }
        let cycle = self.cycles.push(call.0, end.filter(|_| !poll), failed, haste, signals.rounds);
        let same_error = match step.end {
            // Polling several things uses different args each time.
            End::Failure(_) if poll => None,
            End::Failure(error) => self.fail(signals, tool, call, error, at),
            End::Success { .. } => {
                self.tools.retain(|known| known.tool != tool || known.held.is_some());
                None
            }
        };
        (change, repeat.or(cycle.map(around)).or(same_error))
    }

    fn see(
        &mut self,
        step: &Step,
        end: Option<u64>,
        failed: bool,
        haste: bool,
    ) -> (StepChange, TrackedCall) {
        let RequestedCall { call, at, .. } = step.asked;
        let place = self.calls.iter().position(|seen| seen.call == call);
        let known = place.map(|place| self.calls.remove(place));
        let changes = !failed && !step.read_only && !step.asked.poll;
        let (change, seen) = match known {
            Some(mut seen) if end.is_some() && seen.end == end && seen.failed == failed => {
                // A model that waited in between, at any call, has not repeated this one in haste.
                let haste = haste && (failed || seen.waits == self.waits);
                seen.looks = seen.looks.saturating_add(1);
                seen.hasty = seen.hasty.saturating_add(u32::from(haste));
                (StepChange::None, TrackedCall { waits: self.waits, last: at, ..seen })
            }
            _ => {
                let held = known.and_then(|seen| seen.held);
                let change = match known {
                    _ if changes => StepChange::Progress,
                    Some(_) => StepChange::Changed,
                    None => StepChange::None,
                };
                let (since, last, looks, hasty, waits) = (at, at, 1, 1, self.waits);
                (change, TrackedCall { call, end, failed, since, looks, hasty, waits, last, held })
            }
        };
        if self.calls.len() >= CALLS {
            let oldest = self.calls.iter().position(|seen| seen.held.is_none()).unwrap_or(0);
            self.calls.remove(oldest);
        }
        self.calls.push(seen);
        (change, seen)
    }

    /// State has changed: resets the counts. Refusals stay in force.
    fn forgive(&mut self, by: CallHash, at: Instant) {
        for seen in self.calls.iter_mut().filter(|seen| seen.call != by) {
            (seen.since, seen.looks, seen.hasty) = (at, 0, 0);
        }
        self.tools.retain(|tool| tool.held.is_some());
    }

    fn fail(
        &mut self,
        signals: &Signals,
        tool: ToolHash,
        call: CallHash,
        error: ErrorHash,
        at: Instant,
    ) -> Option<Signal> {
        let place = self.tools.iter().position(|known| known.tool == tool);
        let known = place.map(|place| self.tools.remove(place));
        let failing = match known {
            // The same args again count for that call, not for the tool.
            Some(known) if known.error == error => Failing {
                times: known.times.saturating_add(u32::from(known.last_call != call)),
                last_call: call,
                last: at,
                ..known
            },
            _ => {
                let held = known.and_then(|known| known.held);
                Failing { tool, error, last_call: call, times: 1, last: at, held }
            }
        };
        if self.tools.len() >= TOOLS {
            let oldest = self.tools.iter().position(|known| known.held.is_none()).unwrap_or(0);
            self.tools.remove(oldest);
        }
        self.tools.push(failing);
        (failing.times >= signals.same_error)
            .then_some(Signal { rule: Rule::SameError, count: failing.times })
    }

    /// Forgets what is older than `memory`.
    pub(crate) fn expire(&mut self, memory: Duration, now: Instant) {
        // One computation of the limit, for all entries.
        let Some(limit) = now.checked_sub(memory) else { return };
        let is_old = |at: Instant| at <= limit;
        let lasts = |held: &mut Option<ActiveRefusal>, last: Instant| {
            *held = held.filter(|held| !is_old(held.at));
            held.is_some() || !is_old(last)
        };
        if self.last.is_some_and(is_old) {
            self.cycles = Cycles::default();
            self.last = None;
        }
        self.calls.retain_mut(|seen| lasts(&mut seen.held, seen.last));
        self.tools.retain_mut(|tool| lasts(&mut tool.held, tool.last));
    }

    /// Whether nothing is remembered.
    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_none() && self.calls.is_empty() && self.tools.is_empty()
    }

    /// The number of kept entries.
    #[cfg(test)]
    pub(crate) fn size(&self) -> usize {
        self.calls.len() + self.tools.len()
    }
}

impl TrackedCall {
    /// The signal of this call at `times` the thresholds.
    fn signal(&self, signals: &Signals, asked: &RequestedCall, times: u32) -> Option<Signal> {
        let RequestedCall { repeats, at: now, .. } = *asked;
        let most = match self.failed {
            true => signals.failing_repeats,
            false => repeats.unwrap_or(signals.repeats),
        };
        let most = most.saturating_mul(times);
        let length = now.saturating_duration_since(self.since);
        if self.hasty >= most {
            Some(Signal { rule: Rule::Repeat, count: self.hasty })
        } else if self.looks >= most && length >= signals.quiet.saturating_mul(times) {
            Some(Signal { rule: Rule::Quiet, count: self.looks })
        } else {
            None
        }
    }
}

/// The signal of a cycle of so many calls.
const fn around((calls, count): (u8, u32)) -> Signal {
    Signal { rule: Rule::Cycle(calls), count }
}

/// The refusal in force, which may be a new one.
fn hold(held: &mut Option<ActiveRefusal>, found: Option<Signal>, at: Instant) -> Option<Signal> {
    if held.is_none() {
        *held = found.map(|signal| ActiveRefusal { signal, at });
    }
    held.map(|held| held.signal)
}

#[cfg(test)]
mod tests;
