//! Circles among calls, found without recursion: a chain may be as long as the plan.

/// One call's need of another, and where the plan says so.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub(super) to: usize,
    pub(super) at: String,
}

/// An edge that closes a circle, and the calls on it, the first one again at the end.
pub(super) struct Circle<'e> {
    pub(super) edge: &'e Edge,
    pub(super) calls: Vec<usize>,
}

/// Every edge that closes a circle, and an order in which each call comes after all it needs
/// (those on circles aside).
pub(super) fn walk(edges: &[Vec<Edge>]) -> (Vec<Circle<'_>>, Vec<usize>) {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; edges.len()];
    let (mut circles, mut order) = (Vec::new(), Vec::with_capacity(edges.len()));
    for start in 0..edges.len() {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::Open;
        // Each entry: a call on the way, and which of its needs comes next.
        let mut way = vec![(start, 0)];
        while let Some((call, next)) = way.last_mut() {
            let Some(edge) = edges[*call].get(*next) else {
                marks[*call] = Mark::Done;
                order.push(*call);
                way.pop();
                continue;
            };
            *next += 1;
            match marks[edge.to] {
                Mark::Done => {}
                Mark::New => {
                    marks[edge.to] = Mark::Open;
                    way.push((edge.to, 0));
                }
                Mark::Open => {
                    let on_it = way.iter().map(|(call, _)| *call).skip_while(|c| *c != edge.to);
                    circles.push(Circle { edge, calls: on_it.chain([edge.to]).collect() });
                }
            }
        }
    }
    (circles, order)
}
