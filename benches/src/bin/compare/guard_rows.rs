//! The rows of what a user of the guard feels.
use crate::{
    guard, million,
    row::{
        How::{Counted, Real},
        Row,
        Target::{Most, Nothing, Ratio},
    },
    rows::row,
};

/// All of them, in the order in which they are shown.
pub(crate) const ROWS: &[Row] = &[
    row(
        "M1",
        "guard with records in SQLite: a read, the middle one",
        "bare line pump",
        Ratio(1.15),
        Real(guard::read),
    ),
    row(
        "M1",
        "guard with records in SQLite: a read, of a hundred the slowest but one",
        "bare line pump",
        Nothing,
        Real(guard::read_p99),
    ),
    row(
        "M1",
        "guard with records in SQLite: each of 64 reads at once",
        "bare line pump",
        Ratio(1.25),
        Real(guard::reads),
    ),
    row(
        "M1",
        "guard with records in SQLite: a read without an id",
        "the same with records in memory",
        Ratio(1.05),
        Real(guard::read_beside_memory),
    ),
    row(
        "M3",
        "guard with records in SQLite: a keyed mutating call",
        "bare line pump, and 2 syncs",
        Ratio(1.0),
        Real(guard::pay),
    ),
    row(
        "M3",
        "guard with records in SQLite: each of 64 keyed mutating calls at once",
        "bare line pump, and 2 syncs",
        Ratio(1.0),
        Real(guard::pays),
    ),
    row(
        "M3",
        "guard with records in SQLite: a keyed mutating call",
        "",
        Most(2.0),
        Counted("syncs", guard::syncs_of_pay),
    ),
    row(
        "M3",
        "guard with records in SQLite: each of 64 keyed mutating calls at once",
        "",
        Most(0.1),
        Counted("syncs", guard::syncs_of_pays),
    ),
    row(
        "M6",
        "guard with records in SQLite: from the start to the first answer",
        "bare line pump",
        Ratio(3.0),
        Real(guard::start),
    ),
    row(
        "M6",
        "guard: resident memory while idle",
        "",
        Most(12.0),
        Counted("MiB", guard::idle_memory),
    ),
    row("M6", "guard: the stripped binary", "", Most(20.0), Counted("MB", guard::stripped)),
    row(
        "M8",
        "tool-guard session check of 1,000,000 lines",
        "serde_json: parse its lines",
        Ratio(0.8),
        Real(million::check),
    ),
    row("M8", "the same: memory", "", Most(30.0), Counted("MB", million::check_holds)),
    row(
        "M8",
        "tool-guard session repair of 1,000,000 lines, 10 faults",
        "serde_json: parse its lines",
        Ratio(4.0),
        Real(million::repair),
    ),
    row("M8", "the same: memory", "", Most(4.0), Counted("× the file", million::repair_holds)),
];
