//! Dependency graphs over numbered nodes: cycles, and a topological order.
//!
//! For catalogs of tools and plans of calls. The walk is iterative, so long chains need no stack.
//!
//! ```
//! use tr_config::graph::{Edge, walk};
//!
//! // 0 needs 1, and 1 needs 2.
//! let needs = [vec![Edge { to: 1, at: () }], vec![Edge { to: 2, at: () }], vec![]];
//! let walked = walk(&needs);
//! assert!(walked.cycles.is_empty());
//! assert_eq!(walked.order, [2, 1, 0]);
//!
//! let needs = [vec![Edge { to: 1, at: "here" }], vec![Edge { to: 0, at: "there" }]];
//! let cycle = &walk(&needs).cycles[0];
//! assert_eq!((cycle.edge.at, &cycle.nodes[..]), ("there", &[0, 1, 0][..]));
//! ```

/// One dependency, with data of the caller, such as where it is written.
#[derive(Clone, Debug)]
pub struct Edge<T> {
    /// The node that is needed.
    pub to: usize,
    /// The caller's data.
    pub at: T,
}

/// A dependency cycle.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Cycle<'e, T> {
    /// The edge that closes it.
    pub edge: &'e Edge<T>,
    /// The nodes on it; the first one again at the end.
    pub nodes: Vec<usize>,
}

/// The result of [`walk`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Walk<'e, T> {
    /// One cycle for each edge that closes one.
    pub cycles: Vec<Cycle<'e, T>>,
    /// A topological order: each node after those that it needs, except on cycles.
    pub order: Vec<usize>,
}

/// Walks the graph: `edges[n]` are the dependencies of `n`.
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
    let (mut cycles, mut order) = (Vec::new(), Vec::with_capacity(edges.len()));
    for start in 0..edges.len() {
        // Each entry: a node on the path, and the index of its next edge.
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
                    cycles.push(Cycle { edge, nodes: on_it.chain([edge.to]).collect() });
                }
            }
        }
    }
    Walk { cycles, order }
}
