//! The ratios as a bar chart: plain SVG, readable in light and dark mode.

use std::fmt::Write as _;

use super::figures::FIGURES;
use super::report::Report;
use super::systems::System;

const WIDTH: f64 = 760.0;
/// Where bars begin; names are to their left.
const LEFT: f64 = 270.0;
/// Space for the number after the longest bar.
const RIGHT: f64 = 60.0;
const BAR: f64 = 11.0;
const GAP: f64 = 12.0;
const TOP: f64 = 56.0;

/// The colour of a system's bars. Each has enough contrast on white and on black.
fn colour(system: System) -> &'static str {
    match system {
        System::Direct => "#3b82f6",
        System::HttpValkey => "#a855f7",
        System::HttpEmbedded => "#0d9488",
        System::BullMq | System::Restate => "#808080",
    }
}

/// One group of bars.
struct Group {
    title: &'static str,
    bars: Vec<(System, f64)>,
}

fn groups(report: &Report) -> Vec<Group> {
    let systems = report.compared();
    let headlines = FIGURES.iter().filter(|figure| figure.headline);
    let group = |figure| {
        let bar = |ours: &System| Some((*ours, report.ratio(*ours, figure)?.median()));
        Group { title: figure.title, bars: systems.iter().filter_map(bar).collect() }
    };
    headlines.map(group).filter(|group| !group.bars.is_empty()).collect()
}

pub fn svg(report: &Report) -> String {
    draw(&report.compared(), &groups(report))
}

fn draw(systems: &[System], groups: &[Group]) -> String {
    let longest = groups.iter().flat_map(|group| &group.bars).map(|(_, ratio)| *ratio).fold(1.0, f64::max);
    let scale = (WIDTH - LEFT - RIGHT) / longest;
    let height = TOP + groups.iter().map(|group| group.bars.len() as f64 * BAR + GAP).sum::<f64>() + GAP;
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"title desc\">"
    );
    let _ = writeln!(svg, "  <title id=\"title\">FlowFabric beside BullMQ and Restate</title>");
    let _ = writeln!(svg, "  <desc id=\"desc\">{}</desc>", described(groups));
    svg.push_str(
        "  <style>\n    text { font: 12px system-ui, sans-serif; fill: #24292f }\n    .number { font-size: 10px }\n    \
         .one { stroke: #57606a; stroke-dasharray: 3 3 }\n    @media (prefers-color-scheme: dark) {\n      \
         text { fill: #e6edf3 }\n      .one { stroke: #9198a1 }\n    }\n  </style>\n",
    );
    for (n, system) in systems.iter().enumerate() {
        let x = 8.0 + n as f64 * 250.0;
        let rival = system.rival().map_or("", System::title);
        let _ = writeln!(
            svg,
            "  <rect x=\"{x}\" y=\"10\" width=\"11\" height=\"11\" fill=\"{}\"/><text x=\"{}\" y=\"20\">{} ÷ {rival}</text>",
            colour(*system),
            x + 17.0,
            system.title()
        );
    }
    let mut y = TOP;
    for group in groups {
        let middle = y + group.bars.len() as f64 * BAR / 2.0 + 4.0;
        let _ =
            writeln!(svg, "  <text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>", LEFT - 10.0, group.title);
        for (system, ratio) in &group.bars {
            let width = ratio * scale;
            let _ = writeln!(
                svg,
                "  <rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{}\" fill=\"{}\"/>\
                 <text class=\"number\" x=\"{:.1}\" y=\"{:.1}\">{ratio:.2} ×</text>",
                BAR - 1.0,
                colour(*system),
                LEFT + width + 4.0,
                y + 9.0
            );
            y += BAR;
        }
        y += GAP;
    }
    let one = LEFT + scale;
    let _ = writeln!(svg, "  <text class=\"number\" x=\"{one:.1}\" y=\"44\" text-anchor=\"middle\">as good</text>");
    let _ =
        writeln!(svg, "  <line class=\"one\" x1=\"{one:.1}\" x2=\"{one:.1}\" y1=\"48\" y2=\"{:.1}\"/>", y - GAP / 2.0);
    svg.push_str("</svg>\n");
    svg
}

/// The chart as text.
fn described(groups: &[Group]) -> String {
    let mut text = "How many times better than its rival; above 1 FlowFabric is better.".to_owned();
    for group in groups {
        let bars: Vec<String> =
            group.bars.iter().map(|(system, ratio)| format!("{} {ratio:.2}", system.title())).collect();
        let _ = write!(text, " {}: {}.", group.title, bars.join("; "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_says_what_it_shows() {
        let group = Group { title: "no-ops drained/s", bars: vec![(System::Direct, 1.5), (System::HttpEmbedded, 4.0)] };
        let svg = draw(&[System::Direct, System::HttpEmbedded], &[group]);
        assert!(svg.contains("no-ops drained/s: direct, Valkey 1.50; HTTP, embedded 4.00."), "{svg}");
        assert_eq!(svg.matches("class=\"number\"").count(), 3, "{svg}");
        assert!(svg.contains("<title") && svg.contains("prefers-color-scheme"), "{svg}");
    }
}
