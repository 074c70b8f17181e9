//! What needs what, among things that are numbered: circles, and an order without them.
//!
//! For catalogues of tools and plans of calls. Found without recursion: a chain may be as long as
//! the list.
//!
//! ```
//! use tr_core::graph::{Edge, walk};
//!
//! // 0 needs 1, and 1 needs 2.
//! let needs = [vec![Edge { to: 1, at: () }], vec![Edge { to: 2, at: () }], vec![]];
//! let walked = walk(&needs);
//! assert!(walked.circles.is_empty());
//! assert_eq!(walked.order, [2, 1, 0]);
//!
//! let needs = [vec![Edge { to: 1, at: "here" }], vec![Edge { to: 0, at: "there" }]];
//! let circle = &walk(&needs).circles[0];
//! assert_eq!((circle.edge.at, &circle.nodes[..]), ("there", &[0, 1, 0][..]));
//! ```

/// One need, and what its owner wants to remember of it: where it was written, say.
#[derive(Clone, Debug)]
pub struct Edge<T> {
    /// What is needed.
    pub to: usize,
    /// The owner's remark.
    pub at: T,
}

/// A need that closes a circle.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Circle<'e, T> {
    /// The need that closes it.
    pub edge: &'e Edge<T>,
    /// Who is on it; the first one again at the end.
    pub nodes: Vec<usize>,
}

/// What [`walk`] finds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Walk<'e, T> {
    /// One for each need that closes a circle.
    pub circles: Vec<Circle<'e, T>>,
    /// An order in which each comes after all it needs, those on circles aside.
    pub order: Vec<usize>,
}

/// Walks along all needs: `edges[n]` are those of `n`.
///
/// # Panics
/// If an edge leads past the end of `edges`.
#[must_use]
pub fn walk<T>(edges: &[Vec<Edge<T>>]) -> Walk<'_, T> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; edges.len()];
    let (mut circles, mut order) = (Vec::new(), Vec::with_capacity(edges.len()));
    for start in 0..edges.len() {
        // Each entry: a node on the way, and which of its needs comes next.
        let mut way = Vec::new();
        if marks[start] == Mark::New {
            marks[start] = Mark::Open;
            way.push((start, 0));
        }
        while let Some((node, next)) = way.last_mut() {
            let Some(edge) = edges[*node].get(*next) else {
                marks[*node] = Mark::Done;
                order.push(*node);
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
                    let on_it = way.iter().map(|(node, _)| *node).skip_while(|n| *n != edge.to);
                    circles.push(Circle { edge, nodes: on_it.chain([edge.to]).collect() });
                }
            }
        }
    }
    Walk { circles, order }
}
