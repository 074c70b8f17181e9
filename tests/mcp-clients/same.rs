//! Each client sees the same on every way, each payment is made once, and nothing is left running.
use crate::{
    client::Client,
    play::{Seen, without_notes},
    process::until,
    world::{Server, Way, World},
};
use std::{panic::resume_unwind, thread};

#[test]
fn clients_of_others_see_no_difference_on_any_way() {
    let world = World::start();
    thread::scope(|scope| {
        let clients = Client::ALL.map(|client| {
            let world = &world;
            scope.spawn(move || {
                for server in [Server::Everything, Server::Bank] {
                    assert_same(client, server, &client.play(world, server));
                }
            })
        });
        for client in clients {
            client.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
    for client in Client::ALL {
        for way in Way::ALL {
            let order = client.order(way);
            assert_eq!(world.times(&format!("paid {order}")), 1, "{order}");
            if client.cancels() {
                assert_eq!(world.times(&format!("refused {order}")), 1, "{order}");
                // The server hears of it after the client has gone on.
                until(&format!("the count of {order} is cancelled"), || {
                    (world.times(&format!("cancelled {order}")) == 1).then_some(())
                });
            }
        }
    }
    world.end();
}

fn assert_same(client: Client, server: Server, seen: &Seen) {
    let [direct, rest @ ..] = &Way::ALL;
    let direct = seen.on(&format!("{direct:?}"));
    assert!(!direct.is_empty(), "{client:?}, {server:?}");
    for way in rest {
        let other = seen.on(&format!("{way:?}"));
        let steps =
            |seen: &[(&str, _)]| seen.iter().map(|(step, _)| step.to_string()).collect::<Vec<_>>();
        assert_eq!(steps(&other), steps(&direct), "{client:?}, {server:?}, {way:?}");
        for ((step, direct), (_, other)) in direct.iter().zip(&other) {
            assert_eq!(without_notes(other), **direct, "{client:?}, {server:?}, {way:?}, {step}");
        }
    }
}
