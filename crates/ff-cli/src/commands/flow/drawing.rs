//! Draws a graph as text: layers from left to right with lines between them, or, where lines would mislead, a list by layers.
//!
//! A layer holds the nodes whose longest way from a start is the same; an edge over several layers passes through each. Nodes
//! with the same successors share one vertical line. Two lines that go on to different places never meet: when the edges
//! between two layers cannot be drawn like that, or the drawing is wider than the terminal, the list says the same in words.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ff_api::graph::Edge;
use ff_script::generated::{EdgeOn, MemberState};

use super::gutter::Gutter;
use crate::states::{Colour, mark, urgency};

/// The longest name that is drawn whole.
const NAME_MAX: usize = 32;
/// Names of upstreams a line of the list holds, and edges that are described below a drawing.
const NAMED_MAX: usize = 4;
const DESCRIBED_MAX: usize = 10;
const LAYERS_MAX: usize = 200;
/// Behind the longest name of a layer: a space and the begin of its line.
const LEADER: usize = 2;
/// How often layers are put in order by the places of their neighbours.
const SWEEPS: usize = 4;

/// A member.
#[derive(Clone, Debug)]
pub struct Node {
    pub key: String,
    /// What is shown of it.
    pub name: String,
    pub state: MemberState,
}

/// How much room there is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub width: usize,
    /// Nodes of one layer; the others are counted.
    pub rows: usize,
}

impl Size {
    /// More layers than this cannot fit: each takes at least a mark, a letter and an arrow.
    fn layers_max(self) -> usize {
        self.width / 6
    }
}

/// The lines of the drawing, with what its marks mean below.
pub fn draw(nodes: &[Node], edges: &[Edge], size: Size, colour: Colour) -> Vec<String> {
    if nodes.is_empty() {
        return vec!["no members yet".to_owned()];
    }
    let graph = Layered::new(nodes, edges, size);
    let mut lines = picture(&graph, size, colour).unwrap_or_else(|| listing(&graph, nodes, edges, size.rows, colour));
    lines.push(String::new());
    lines.push(legend(nodes, colour));
    lines.extend(described(edges));
    lines
}

fn legend(nodes: &[Node], colour: Colour) -> String {
    let states: BTreeSet<(usize, MemberState)> = nodes.iter().map(|n| (urgency(n.state), n.state)).collect();
    let said = states.iter().map(|(_, state)| format!("{} {state}", colour.paint(*state, &mark(*state).to_string())));
    said.collect::<Vec<_>>().join("   ")
}

/// Edges that are not met by a success; lines do not show it.
fn described(edges: &[Edge]) -> Vec<String> {
    let special: Vec<&Edge> = edges.iter().filter(|edge| edge.on != EdgeOn::Success).collect();
    let mut lines: Vec<String> =
        special.iter().take(DESCRIBED_MAX).map(|e| format!("on {}: {} → {}", e.on, e.from, e.to)).collect();
    if special.len() > DESCRIBED_MAX {
        lines.push(format!("and {} more edges on failure or completion", special.len() - DESCRIBED_MAX));
    }
    lines
}

/// Something with a place in a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Vertex {
    /// A node, by its index.
    Node(usize),
    /// Nodes that are only counted, and how many are in which state.
    Rest(String),
    /// An edge on its way to a later layer.
    Passing,
}

struct Drawn {
    vertex: Vertex,
    label: String,
    /// Of what is counted and what passes there is none.
    state: Option<MemberState>,
}

/// The graph by layers.
struct Layered {
    vertices: Vec<Drawn>,
    layers: Vec<Vec<usize>>,
    /// Between neighbouring layers only.
    edges: BTreeSet<(usize, usize)>,
    /// The layer of each node.
    depth: Vec<usize>,
}

/// The longest way to each node.
fn depths(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let (mut depth, mut open, mut out) = (vec![0; count], vec![0_usize; count], vec![Vec::new(); count]);
    for &(from, to) in edges {
        open[to] += 1;
        out[from].push(to);
    }
    let mut ready: Vec<usize> = (0..count).filter(|&node| open[node] == 0).collect();
    while let Some(node) = ready.pop() {
        for &to in &out[node] {
            depth[to] = depth[to].max(depth[node] + 1);
            open[to] -= 1;
            if open[to] == 0 {
                ready.push(to);
            }
        }
    }
    depth
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_MAX - 1).chain(['…']).collect()
}

/// How many of these nodes are in which state.
fn counted(nodes: &[&Node]) -> String {
    let mut counts: BTreeMap<(usize, MemberState), usize> = BTreeMap::new();
    for node in nodes {
        *counts.entry((urgency(node.state), node.state)).or_default() += 1;
    }
    let said: Vec<String> = counts.iter().map(|((_, state), count)| format!("{count} {state}")).collect();
    format!("… {} more: {}", nodes.len(), said.join(", "))
}

/// Of a layer that has more, the nodes most worth seeing in the order they were added, and the others.
fn chosen(layer: &[usize], nodes: &[Node], rows: usize) -> (Vec<usize>, Vec<usize>) {
    if layer.len() <= rows {
        return (layer.to_vec(), Vec::new());
    }
    let mut by_urgency = layer.to_vec();
    by_urgency.sort_by_key(|&node| (urgency(nodes[node].state), node));
    let mut rest = by_urgency.split_off(rows - 1);
    by_urgency.sort_unstable();
    rest.sort_unstable();
    (by_urgency, rest)
}

impl Layered {
    fn new(nodes: &[Node], edges: &[Edge], size: Size) -> Self {
        let index: HashMap<&str, usize> = nodes.iter().enumerate().map(|(at, n)| (n.key.as_str(), at)).collect();
        let pairs: Vec<(usize, usize)> =
            edges.iter().filter_map(|e| Some((*index.get(e.from.as_str())?, *index.get(e.to.as_str())?))).collect();
        let depth = depths(nodes.len(), &pairs);
        let mut by_depth: Vec<Vec<usize>> = vec![Vec::new(); depth.iter().max().map_or(0, |deepest| deepest + 1)];
        for (node, &at) in depth.iter().enumerate() {
            by_depth[at].push(node);
        }
        let mut made =
            Self { vertices: Vec::new(), layers: vec![Vec::new(); by_depth.len()], edges: BTreeSet::new(), depth };
        let mut vertex_of = vec![0; nodes.len()];
        for (at, layer) in by_depth.iter().enumerate() {
            let (shown, rest) = chosen(layer, nodes, size.rows);
            for node in shown {
                let name = shortened(&nodes[node].name);
                let label = format!("{} {name}", mark(nodes[node].state));
                vertex_of[node] = made.add(at, Vertex::Node(node), label, Some(nodes[node].state));
            }
            if !rest.is_empty() {
                let label = counted(&rest.iter().map(|&node| &nodes[node]).collect::<Vec<_>>());
                let vertex = made.add(at, Vertex::Rest(label.clone()), label, None);
                rest.iter().for_each(|&node| vertex_of[node] = vertex);
            }
        }
        // Where no picture can come of it, no edge has to find its way through thousands of layers.
        let drawn = if made.layers.len() > size.layers_max() { Vec::new() } else { pairs };
        let mut passing: HashMap<(usize, usize), usize> = HashMap::new();
        for (from, to) in drawn {
            let (mut at, last) = (vertex_of[from], vertex_of[to]);
            for layer in made.depth[from] + 1..made.depth[to] {
                let next = *passing
                    .entry((vertex_of[from], layer))
                    .or_insert_with(|| made.add(layer, Vertex::Passing, String::new(), None));
                made.edges.insert((at, next));
                at = next;
            }
            made.edges.insert((at, last));
        }
        made
    }

    fn add(&mut self, layer: usize, vertex: Vertex, label: String, state: Option<MemberState>) -> usize {
        self.vertices.push(Drawn { vertex, label, state });
        let at = self.vertices.len() - 1;
        self.layers[layer].push(at);
        at
    }

    /// The layers with their vertices where their neighbours are, and the row of each vertex.
    fn placed(&self) -> (Vec<Vec<usize>>, Vec<usize>) {
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); self.vertices.len()];
        let mut after = before.clone();
        for &(from, to) in &self.edges {
            before[to].push(from);
            after[from].push(to);
        }
        let mut layers = self.layers.clone();
        let mut place = vec![0_usize; self.vertices.len()];
        let note = |layer: &[usize], place: &mut Vec<usize>| {
            layer.iter().enumerate().for_each(|(at, &vertex)| place[vertex] = at);
        };
        layers.iter().for_each(|layer| note(layer, &mut place));
        for sweep in 0..SWEEPS {
            let down = sweep % 2 == 0;
            let neighbours = if down { &before } else { &after };
            let order: Vec<usize> = if down { (0..layers.len()).collect() } else { (0..layers.len()).rev().collect() };
            for at in order {
                // The middle of its neighbours, as a sum that can be compared.
                let middle = |vertex: usize| match neighbours[vertex].len() {
                    0 => place[vertex] * 1_000,
                    count => neighbours[vertex].iter().map(|&n| place[n]).sum::<usize>() * 1_000 / count,
                };
                let mut layer = layers[at].clone();
                layer.sort_by_key(|&vertex| (middle(vertex), place[vertex]));
                note(&layer, &mut place);
                layers[at] = layer;
            }
        }
        let mut row = vec![0; self.vertices.len()];
        for layer in &layers {
            let mut free = 0;
            for &vertex in layer {
                let parents = &before[vertex];
                let wished = parents.iter().map(|&parent| row[parent]).sum::<usize>().checked_div(parents.len());
                row[vertex] = wished.unwrap_or(0).max(free);
                free = row[vertex] + 1;
            }
        }
        (layers, row)
    }
}

/// Lines between layers, when they can be drawn without misleading and fit.
fn picture(graph: &Layered, size: Size, colour: Colour) -> Option<Vec<String>> {
    if graph.layers.len() > size.layers_max() {
        return None;
    }
    let (layers, row) = graph.placed();
    let height = row.iter().max().map_or(0, |last| last + 1);
    let layer_of: HashMap<usize, usize> =
        layers.iter().enumerate().flat_map(|(at, layer)| layer.iter().map(move |&vertex| (vertex, at))).collect();
    let mut between: Vec<Vec<(usize, usize)>> = vec![Vec::new(); layers.len()];
    for &(from, to) in &graph.edges {
        between[layer_of[&from]].push((row[from], row[to]));
    }
    let mut lines = vec![String::new(); height];
    let mut columns = 0;
    for (at, layer) in layers.iter().enumerate() {
        let gutter = Gutter::new(&between[at], height)?;
        let label_width = layer.iter().map(|&vertex| graph.vertices[vertex].label.chars().count()).max().unwrap_or(0);
        let heads: BTreeSet<usize> = layers
            .get(at + 1)
            .into_iter()
            .flatten()
            .filter(|&&v| graph.vertices[v].vertex != Vertex::Passing)
            .map(|&v| row[v])
            .collect();
        let in_row: HashMap<usize, usize> = layer.iter().map(|&vertex| (row[vertex], vertex)).collect();
        let leads_on: BTreeSet<usize> = between[at].iter().map(|(from, _)| *from).collect();
        for (line, text) in lines.iter_mut().enumerate() {
            let fill = if leads_on.contains(&line) { '─' } else { ' ' };
            let mut used = 0;
            if let Some(&vertex) = in_row.get(&line) {
                let drawn = &graph.vertices[vertex];
                text.push_str(
                    &drawn.state.map_or_else(|| drawn.label.clone(), |state| colour.paint(state, &drawn.label)),
                );
                used = drawn.label.chars().count();
            }
            // A name and a line keep a space between them.
            if used > 0 {
                text.push(' ');
                used += 1;
            }
            text.extend(std::iter::repeat_n(fill, label_width + LEADER - used));
            if at + 1 < layers.len() {
                text.push_str(&gutter.line(line, heads.contains(&line)));
            }
        }
        columns += label_width + LEADER + gutter.width();
    }
    (columns <= size.width).then(|| lines.into_iter().map(|line| line.trim_end().to_owned()).collect())
}

/// The same in words: layer by layer, each node with those it waits for.
fn listing(graph: &Layered, nodes: &[Node], edges: &[Edge], rows: usize, colour: Colour) -> Vec<String> {
    let mut upstream: HashMap<&str, Vec<&str>> = HashMap::new();
    for edge in edges {
        upstream.entry(edge.to.as_str()).or_default().push(edge.from.as_str());
    }
    let mut by_depth: Vec<Vec<usize>> = vec![Vec::new(); graph.layers.len()];
    for (node, &at) in graph.depth.iter().enumerate() {
        by_depth[at].push(node);
    }
    let digits = by_depth.len().to_string().len();
    let mut lines = Vec::new();
    for (at, layer) in by_depth.iter().take(LAYERS_MAX).enumerate() {
        let (shown, rest) = chosen(layer, nodes, rows);
        let widest = shown.iter().map(|&node| shortened(&nodes[node].name).chars().count()).max().unwrap_or(0);
        for (place, node) in shown.iter().enumerate() {
            let node = &nodes[*node];
            let number = if place == 0 { (at + 1).to_string() } else { String::new() };
            let name = shortened(&node.name);
            let pad = " ".repeat(widest - name.chars().count());
            let label = colour.paint(node.state, &format!("{} {name}", mark(node.state)));
            let after =
                upstream.get(node.key.as_str()).map(|names| format!("  ← {}", joined(names))).unwrap_or_default();
            lines.push(format!("{number:>digits$}  {label}{pad}{after}").trim_end().to_owned());
        }
        if !rest.is_empty() {
            let rest: Vec<&Node> = rest.iter().map(|&node| &nodes[node]).collect();
            lines.push(format!("{:>digits$}  {}", "", counted(&rest)));
        }
    }
    if by_depth.len() > LAYERS_MAX {
        lines.push(format!("… {} more layers", by_depth.len() - LAYERS_MAX));
    }
    lines
}

fn joined(names: &[&str]) -> String {
    let shown = names.iter().take(NAMED_MAX).map(|name| shortened(name)).collect::<Vec<_>>().join(", ");
    if names.len() > NAMED_MAX { format!("{shown} and {} more", names.len() - NAMED_MAX) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: &str, to: &str, on: &str) -> Edge {
        let (from, to, on) = (from.to_owned(), to.to_owned(), on.parse().expect("a word"));
        Edge { from, to, on, pass_as: None, state: ff_script::generated::EdgeState::Pending }
    }

    /// A graph of `name:state` and `from>to` words.
    fn drawn(nodes: &str, edges: &str, size: Size) -> String {
        let nodes: Vec<Node> = nodes
            .split_whitespace()
            .map(|word| {
                let (key, state) = word.split_once(':').unwrap_or((word, "waiting"));
                Node { key: key.to_owned(), name: key.to_owned(), state: state.parse().expect("a state") }
            })
            .collect();
        let edges: Vec<Edge> = edges
            .split_whitespace()
            .map(|word| {
                let (word, on) = word.split_once(':').unwrap_or((word, "success"));
                let (from, to) = word.split_once('>').expect("an edge");
                edge(from, to, on)
            })
            .collect();
        let lines = draw(&nodes, &edges, size, Colour::NONE);
        let end = lines.iter().rposition(String::is_empty).expect("a legend");
        format!("\n{}\n", lines[..end].join("\n"))
    }

    const ROOM: Size = Size { width: 120, rows: 12 };

    #[test]
    fn a_diamond() {
        let nodes = "fetch:completed left:active right join:waiting_children";
        assert_eq!(
            drawn(nodes, "fetch>left fetch>right left>join right>join", ROOM),
            "
✓ fetch ─┬─▶ ● left ──┬─▶ · join
         └─▶ ○ right ─┘
"
        );
    }

    #[test]
    fn a_chain() {
        assert_eq!(drawn("a:completed b:active c", "a>b b>c", ROOM), "\n✓ a ──▶ ● b ──▶ ○ c\n");
    }

    #[test]
    fn an_edge_over_several_layers_passes_them() {
        assert_eq!(
            drawn("a b c d", "a>b b>c c>d a>d", ROOM),
            "
○ a ─┬─▶ ○ b ──▶ ○ c ─┬─▶ ○ d
     └────────────────┘
"
        );
    }

    #[test]
    fn stages_share_a_line() {
        assert_eq!(
            drawn("a b c d", "a>c a>d b>c b>d", ROOM),
            "
○ a ─┬─▶ ○ c
○ b ─┴─▶ ○ d
"
        );
    }

    #[test]
    fn branches_of_their_own_cross_nothing() {
        assert_eq!(
            drawn("s a b c a1 b1 b2 end", "s>a s>b s>c a>a1 b>b1 b>b2 a1>end b1>end b2>end c>end", ROOM),
            "
○ s ─┬─▶ ○ a ────▶ ○ a1 ─┐
     ├─▶ ○ b ──┬─▶ ○ b1 ─┼─▶ ○ end
     └─▶ ○ c ─┐└─▶ ○ b2 ─┤
              └──────────┘
"
        );
    }

    #[test]
    fn a_wide_layer_shows_what_is_worth_seeing_and_counts_the_rest() {
        let mut nodes = "split:completed".to_owned();
        let mut edges = String::new();
        for n in 0..1_000 {
            let state = match n {
                700 => "failed",
                800 => "active",
                _ => "completed",
            };
            nodes.push_str(&format!(" p{n}:{state}"));
            edges.push_str(&format!(" split>p{n} p{n}>join"));
        }
        nodes.push_str(" join:waiting_children");
        assert_eq!(
            drawn(&nodes, &edges, Size { width: 120, rows: 4 }),
            "
✓ split ─┬─▶ ✓ p0 ──────────────────────┐
         ├─▶ ✗ p700 ────────────────────┼─▶ · join
         ├─▶ ● p800 ────────────────────┤
         └─▶ … 997 more: 997 completed ─┘
"
        );
    }

    #[test]
    fn what_lines_cannot_say_is_listed() {
        assert_eq!(
            drawn("a b c d:active", "a>c a>d b>d b>c c>d", Size { width: 10, rows: 12 }),
            "
1  ○ a
   ○ b
2  ○ c  ← a, b
3  ● d  ← a, b, c
"
        );
        // Two nodes share one successor and have others of their own.
        assert_eq!(
            drawn("a b x y z", "a>x a>y b>y b>z", ROOM),
            "
1  ○ a
   ○ b
2  ○ x  ← a
   ○ y  ← a, b
   ○ z  ← b
"
        );
    }

    #[test]
    fn edges_on_failure_are_said_below() {
        let nodes = [("a", "failed"), ("b", "active")].map(|(key, state)| Node {
            key: key.to_owned(),
            name: key.to_owned(),
            state: state.parse().expect("a state"),
        });
        let edges = [edge("a", "b", "failure")];
        let lines = draw(&nodes, &edges, ROOM, Colour::NONE);
        assert_eq!(lines, ["✗ a ──▶ ● b", "", "✗ failed   ● active", "on failure: a → b"]);
    }
}
