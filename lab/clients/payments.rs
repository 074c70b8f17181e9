//! A payment whose receipt mail fails afterwards.
use crate::agent::{Agent, step};

const MAILS: [&str; 3] = [
    "Request failed with status code 503",
    "429 Too Many Requests",
    "connect ECONNREFUSED 127.0.0.1:25",
];

#[test]
fn is_made_once_and_the_model_reads_that_it_may_have_run() {
    for agent in Agent::ALL {
        for mail in MAILS {
            // The model asks again, under another id.
            let turn = agent.play(&[step("pay", "order 42"), step("pay", "order 42")], mail);
            assert_eq!(turn.calls.len(), 1, "{agent:?}, {mail}: {:?}", turn.calls);
            assert!(turn.read.contains("this one did not run"), "{agent:?}: {}", turn.read);
            assert!(turn.read.contains(mail), "{agent:?}: {}", turn.read);
            assert!(turn.read.contains("[MAY HAVE RUN]"), "{agent:?}: {}", turn.read);
        }
    }
}
