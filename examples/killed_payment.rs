//! A process is killed in the middle of a payment: the card is charged once, and an operator settles the outcome.
//!
//! Processes share their records in Redis. The first dies after the bank has charged the card and
//! before anything is recorded. The second asks for the same payment, and gets the error that its outcome
//! is unknown. An operator reads the bank's ledger and settles the record; the third gets the receipt.
//!
//! `cargo run -p examples --example killed_payment`
//!
//! It starts its own Redis server, and ends it. Without `redis-server` on the `PATH` it says how to
//! install it. The processes are this program too, started with a name, the server's address and the
//! ledger's path.
use std::{
    env,
    io::{BufRead as _, BufReader},
    process::{self, Command, Stdio},
    time::Duration,
};
use tokio::time::{Instant, sleep};
use tower::{ServiceBuilder, ServiceExt as _, service_fn};
use tr_core::{BoxError, Effect, Params, ToolCall, ToolOutcome, failure_info};
use tr_idempotency::{IdempotencyLayer, Resolution, redis::Redis};
use tr_testkit::{ledger::Ledger, redis::Server};

/// The lease of a call: 2 minutes by default, shortened for the example.
const LEASE: Duration = Duration::from_secs(1);

const CHARGED: &str = "bank: charged 4200, the answer is on its way";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let args: Vec<String> = env::args().skip(1).collect();
    match &args[..] {
        [name, redis, bank] => agent(name, redis, Ledger::at(bank)).await,
        _ => story().await,
    }
}

/// The layer with the shared records.
async fn records(redis: &str) -> Result<IdempotencyLayer, BoxError> {
    let store = Redis::builder(redis).connect().await?;
    Ok(IdempotencyLayer::builder().store(store).inflight_ttl(LEASE).build()?)
}

/// Asks for the payment, and prints the result.
async fn agent(name: &str, redis: &str, bank: Ledger) -> Result<(), BoxError> {
    let pay = ServiceBuilder::new()
        .layer(records(redis).await?)
        .service(service_fn(move |call| charge(call, bank.clone())));
    println!("{name}: pays order-42");
    let asked = Instant::now();
    let answer = pay.oneshot(payment()?).await;
    let waited = asked.elapsed().as_secs_f32();
    match answer {
        Ok(paid) => {
            let receipt = paid.content().map_or("nothing", |content| content.get());
            println!("{name}: has {receipt}, from the record: {}", paid.from_cache());
        }
        Err(error) => {
            let facts = failure_info(&*error).ok_or("every error says whether the tool ran")?;
            println!("{name}: after {waited:.1} s {}: {error}", facts.code());
        }
    }
    Ok(())
}

/// An agent's call. The idempotency key makes all of them one payment.
fn payment() -> Result<ToolCall, BoxError> {
    let params = Params::from_text(r#"{"order": 42, "cents": 4200}"#)?;
    let call = ToolCall::new("pay", params).effect(Effect::Mutating);
    Ok(call.session("s-1").idempotency_key("order-42"))
}

/// The tool. It passes the provider key to the bank, which is the same in every process.
async fn charge(call: ToolCall, bank: Ledger) -> Result<ToolOutcome, BoxError> {
    let payment = call.fencing_token().ok_or("the records give every run a claim")?.provider_key();
    bank.append(&payment)?;
    println!("{CHARGED}");
    sleep(Duration::from_secs(60)).await;
    receipt(&payment, &bank)
}

/// The bank's receipt for a payment.
fn receipt(payment: &str, bank: &Ledger) -> Result<ToolOutcome, BoxError> {
    let line = bank.lines()?.iter().position(|line| line == payment).ok_or("never charged")?;
    let receipt = format!("ch_{}", line + 1);
    Ok(ToolOutcome::success(serde_json::json!({ "receipt": receipt, "cents": 4200 })))
}

async fn story() -> Result<(), BoxError> {
    let server = Server::start()?;
    let bank = Ledger::at(env::temp_dir().join(format!("killed-payment-{}", process::id())));
    let program = env::current_exe()?;
    let process = |name: &str| {
        let mut process = Command::new(&program);
        process.args([name, &server.url()]).arg(bank.path());
        process
    };
    let run = |name| match process(name).status()? {
        end if end.success() => Ok(()),
        end => Err(BoxError::from(format!("{name}: {end}"))),
    };

    println!("── a process is killed in the middle of a payment");
    let mut first = process("first").stdout(Stdio::piped()).spawn()?;
    for line in BufReader::new(first.stdout.take().ok_or("it is piped")?).lines() {
        let line = line?;
        println!("{line}");
        if line == CHARGED {
            break;
        }
    }
    first.kill()?; // As kill -9 does.
    println!("first: {}", first.wait()?);

    println!("── another one asks for the same payment");
    run("second")?;

    println!("── an operator asks the bank, and settles it");
    let layer = records(&server.url()).await?;
    let records = layer.handle().in_store().ok_or("the layer has a store")?;
    for lost in records.unknown(10).await?.records {
        let key = lost.hashed_key().ok_or("a record of ours")?;
        let receipt = receipt(&key.to_string(), &bank)?;
        let how = Resolution::Done(receipt);
        records.settle_by(&key, Some(lost.epoch), how, None).await??;
        println!("{} of {}: done", lost.tool, lost.idempotency_key);
    }

    println!("── once more");
    run("third")?;

    println!("charges in the ledger: {}", bank.lines()?.len());
    Ok(std::fs::remove_file(bank.path())?)
}
