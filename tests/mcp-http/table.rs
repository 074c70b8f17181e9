//! The table of faults: each row for a tool that reads and one that pays, with HTTP and with standard
//! input and output in front, and every kind of client.
use crate::{
    client::{Call, Era, Kind, Seen},
    guard::{Shop, Way},
    upstream::{Auth, Fault, Lost, Tail, Upstream},
    wire::now,
};
use std::{fs, time::Duration};

/// What the client sees in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    /// The receipt.
    Answer,
    /// A result that says the tool may have run.
    MayHaveRun,
    /// A result that says it failed.
    InBand,
    /// A result that says the tool ran, and its answer was too long.
    TooLong,
    /// What the server sent: its status over HTTP; in band where there is no status.
    Passes(u16),
    /// The bytes of the server's answer, which hold this.
    AsItCame(&'static str),
}

/// More than the bound by this is too slow, even on a busy machine.
const SLACK: Duration = Duration::from_secs(8);

struct Row {
    fault: Fault,
    era: Era,
    bound: Duration,
}

impl Row {
    fn check(&self, way: Way, tool: &'static str, expect: Expect) {
        let upstream = Upstream::start();
        let shop = || Shop::over(&upstream).with(["--timeout", "1s", "--max-line", "4096"]);
        let (shop, declared) = (shop(), shop());
        // A call with a key is no read on the word of the server alone.
        let catalog = declared.path("catalog.toml");
        fs::write(&catalog, "[tools.balance]\neffect = \"read_only\"\n").unwrap();
        let declared = declared.with(["--catalog".into(), catalog]);
        for kind in Kind::ALL {
            let shop = if kind == Kind::Keyed { &declared } else { &shop };
            let mut client = shop.open(way, kind, self.era);
            let call = Call::new(kind, tool, &format!("{kind:?}"));
            upstream.play(self.fault);
            let since = now();
            let seen = client.call(&call);
            let took = since.elapsed();
            assert!(took < self.bound + SLACK, "{kind:?}: {took:?}: {seen:?}");
            self.saw(way, &seen, expect, kind);
            let executed = upstream.executed(&call.order);
            if tool != "pay" {
                continue;
            }
            let once = usize::from(self.fault.executes() || expect == Expect::Answer);
            match expect {
                // The client repeats it, which the server asked for.
                Expect::Passes(_) => {
                    assert!(executed <= 1, "{kind:?}: {executed} payments: {seen:?}");
                }
                _ => assert_eq!(executed, once, "{kind:?}: {seen:?}"),
            }
            // A client that asks again, under another JSON-RPC id.
            if matches!(expect, Expect::MayHaveRun | Expect::TooLong | Expect::AsItCame(_)) {
                if kind == Kind::Keyless && expect != Expect::MayHaveRun {
                    continue;
                }
                let again = client.once(&call);
                assert_eq!(upstream.executed(&call.order), once, "{kind:?}, again: {again:?}");
                assert!(matches!(again, Seen::Answer(_)), "{kind:?}, again: {again:?}");
            }
        }
    }

    fn saw(&self, way: Way, seen: &[Seen], expect: Expect, kind: Kind) {
        let last = seen.last().unwrap();
        let text = last.text();
        let holds = match expect {
            Expect::Answer => last.is_success() && text.contains("receipt of"),
            Expect::MayHaveRun => last.is_in_band_failure() && text.contains("may have run"),
            Expect::InBand => last.is_in_band_failure(),
            Expect::TooLong => last.is_in_band_failure() && !text.contains("receipt"),
            Expect::Passes(status) if way == Way::HttpHttp => seen[0].is_status(status),
            Expect::Passes(_) => matches!(last, Seen::Answer(_)),
            Expect::AsItCame(part) => text.contains(part),
        };
        assert!(holds, "{kind:?}, expected {expect:?}: {seen:?}");
        // No transport error for a payment that may have run.
        if expect == Expect::MayHaveRun {
            assert_eq!(seen.len(), 1, "{kind:?}: {seen:?}");
        }
    }
}

macro_rules! rows {
    ($($name:ident: $fault:expr, $era:ident, read: $read:expr, payment: $payment:expr, $bound:literal s;)*) => {$(
        mod $name {
            #[allow(clippy::wildcard_imports)]
            use super::*;

            fn row() -> Row {
                Row { fault: $fault, era: Era::$era, bound: Duration::from_secs($bound) }
            }

            #[test]
            fn read_over_http() {
                row().check(Way::HttpHttp, "balance", $read);
            }

            #[test]
            fn payment_over_http() {
                row().check(Way::HttpHttp, "pay", $payment);
            }

            #[test]
            fn read_from_stdio() {
                row().check(Way::StdioHttp, "balance", $read);
            }

            #[test]
            fn payment_from_stdio() {
                row().check(Way::StdioHttp, "pay", $payment);
            }
        }
    )*};
}

const fn auth(status: u16, is_challenge: bool) -> Fault {
    Fault::Auth(Auth { status, is_challenge })
}

use Expect::{Answer, AsItCame, InBand, MayHaveRun, Passes, TooLong};

rows! {
    no_fault: Fault::None, Legacy, read: Answer, payment: Answer, 1 s;
    no_fault_as_events: Fault::NoneAsEvents, Legacy, read: Answer, payment: Answer, 1 s;
    no_fault_modern: Fault::None, Modern, read: Answer, payment: Answer, 1 s;
    no_fault_modern_as_events: Fault::NoneAsEvents, Modern, read: Answer, payment: Answer, 1 s;
    // With this short a --timeout a read is tried again: that is so within 30 s.
    no_headers: Fault::NoHeaders, Legacy, read: Answer, payment: MayHaveRun, 1 s;
    slow_body: Fault::SlowBody, Legacy, read: Answer, payment: MayHaveRun, 1 s;
    dropped: Fault::Dropped, Legacy, read: Answer, payment: MayHaveRun, 1 s;
    dropped_modern: Fault::Dropped, Modern, read: Answer, payment: MayHaveRun, 1 s;
    sse_cut_event_id: Fault::SseCut(Tail::EventId), Legacy, read: Answer, payment: MayHaveRun, 10 s;
    sse_cut_resumable: Fault::SseCut(Tail::Resumable), Legacy, read: Answer, payment: Answer, 10 s;
    sse_cut_no_id: Fault::SseCut(Tail::NoEventId), Legacy, read: Answer, payment: MayHaveRun, 1 s;
    sse_cut_modern: Fault::SseCut(Tail::NoEventId), Modern, read: Answer, payment: MayHaveRun, 1 s;
    session_lost_404: Fault::LostSession(Lost::NotFound), Legacy, read: Passes(404), payment: MayHaveRun, 1 s;
    session_lost_400: Fault::LostSession(Lost::BadRequest), Legacy, read: Passes(400), payment: MayHaveRun, 1 s;
    session_lost_404_before: Fault::LostSessionBefore(Lost::NotFound), Legacy, read: Passes(404), payment: MayHaveRun, 1 s;
    challenge_401: auth(401, true), Legacy, read: Passes(401), payment: Passes(401), 1 s;
    challenge_403: auth(403, true), Legacy, read: Passes(403), payment: Passes(403), 1 s;
    no_challenge_401: auth(401, false), Legacy, read: Passes(401), payment: MayHaveRun, 1 s;
    no_challenge_403: auth(403, false), Legacy, read: Passes(403), payment: MayHaveRun, 1 s;
    too_many_429: Fault::TooMany, Legacy, read: Answer, payment: Answer, 5 s;
    status_503: Fault::Status(503), Legacy, read: Answer, payment: MayHaveRun, 5 s;
    status_500: Fault::Status(500), Legacy, read: Answer, payment: MayHaveRun, 5 s;
    gateway_404: Fault::Gateway404, Legacy, read: Answer, payment: MayHaveRun, 5 s;
    malformed_readable_id: Fault::MalformedReadableId, Legacy, read: AsItCame("NaN"), payment: AsItCame("NaN"), 1 s;
    wrong_id: Fault::WrongId, Legacy, read: InBand, payment: MayHaveRun, 1 s;
    oversized: Fault::Oversized(9000), Legacy, read: InBand, payment: TooLong, 1 s;
    html: Fault::Html, Legacy, read: InBand, payment: MayHaveRun, 1 s;
    redirect: Fault::Redirect, Legacy, read: InBand, payment: MayHaveRun, 1 s;
    accepted_202: Fault::Accepted, Legacy, read: InBand, payment: MayHaveRun, 1 s;
}
