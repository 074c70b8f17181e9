//! A trip in one turn: concurrent searches, a flaky one, one that is down, and a booking.
//!
//! `cargo run -p examples --example turn`
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::sleep;
use tool_reliability::ToolStack;
use tower::service_fn;
use tr_core::{BoxError, Effect, ToolCall, ToolOutcome};
use tr_turn::{Call, Draft, Recorder, Report, Tools, Turns};

static FLIGHT_SEARCHES: AtomicU32 = AtomicU32::new(0);

/// The tools of an agent.
async fn tools(call: ToolCall) -> Result<ToolOutcome, BoxError> {
    sleep(Duration::from_millis(30)).await;
    Ok(ToolOutcome::success(match call.parts().tool.label() {
        "flight_search" if FLIGHT_SEARCHES.fetch_add(1, Relaxed) == 0 => {
            return Err("read ECONNRESET".into());
        }
        "flight_search" => json!([{ "id": "LH 1", "price": 99 }]),
        "hotel_search" => return Err("Invalid city code: LX".into()),
        "hotel_search_backup" => json!([{ "id": "Ritz" }]),
        "car_search" => return Err("Authentication failed (401)".into()),
        _ => return Ok(ToolOutcome::success(call.parts().params.clone())),
    }))
}

async fn trip() -> Result<Report, BoxError> {
    // The recorder adds what happens inside calls to the turn's trace.
    let recorder = Recorder::default();
    let stack =
        ToolStack::builder().hook(recorder.clone()).observer(Arc::new(recorder.clone())).build()?;
    let reads = |tool: &str| Call::new(tool).effect(Effect::ReadOnly);
    let booking = json!({
        "flight": { "$from": "flight_search", "at": "/0/id" },
        "hotel": { "$from": "hotel_search", "at": "/0/id" },
        "cars": { "$from": "car_search" },
    });
    let plan = Draft::new("trip-1")
        .call(reads("flight_search"))
        .call(reads("hotel_search").alternative("hotel_search_backup"))
        .call(reads("car_search").default_value(json!([])))
        .call(Call::new("book").required().params(booking).idempotency_key("order-42"))
        .check(&Tools::any())?;
    Ok(Turns::new(stack.service(service_fn(tools))).recorder(recorder).run(plan).await)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let report = trip().await?;
    print!("{}", report.trace);
    let booked = report.call("book").and_then(|call| call.content());
    println!("\nbooked: {}", booked.map_or("nothing", |booked| booked.get()));
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test(start_paused = true)]
    async fn it_books_with_what_there_is() {
        let report = super::trip().await.unwrap();
        assert_eq!(
            report.summary,
            "Completed flight search, hotel search and book, but car search failed"
        );
        assert_eq!(
            report.call("book").unwrap().content().unwrap().get(),
            r#"{"cars":[],"flight":"LH 1","hotel":"Ritz"}"#
        );
    }
}
