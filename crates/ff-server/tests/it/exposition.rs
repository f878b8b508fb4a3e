//! Reads a page of metrics strictly: what a scraper might forgive fails here.

use std::collections::{BTreeMap, BTreeSet};

/// One number with its labels.
pub type Labels = BTreeMap<String, String>;

/// A metric as the page declares it.
#[derive(Clone, Debug, Default)]
pub struct Family {
    pub kind: String,
    pub help: String,
    /// By the name of the number, e.g. with `_bucket`, and its labels.
    pub samples: BTreeMap<(String, Labels), f64>,
}

/// A page by its families.
pub type Page = BTreeMap<String, Family>;

/// Reads a page of the Prometheus text format 0.0.4.
#[track_caller]
pub fn plain(text: &str) -> Page {
    assert!(text.ends_with('\n') && !text.contains("# EOF"), "ends with a line and has no mark of OpenMetrics");
    read(text)
}

/// Reads an OpenMetrics page into the names of the plain form.
#[track_caller]
pub fn open_metrics(text: &str) -> Page {
    let body = text.strip_suffix("# EOF\n").expect("OpenMetrics ends with its mark");
    assert!(!body.contains("# EOF"));
    let named = read(body);
    named
        .into_iter()
        .map(|(name, family)| if family.kind == "counter" { (format!("{name}_total"), family) } else { (name, family) })
        .collect()
}

#[track_caller]
fn read(text: &str) -> Page {
    let mut page = Page::new();
    let mut helped: Option<(String, String)> = None;
    let mut current: Option<String> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a name and its help");
            assert!(helped.is_none() && !help.is_empty(), "{line}");
            helped = Some((name.to_owned(), help.to_owned()));
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and its kind");
            let (about, help) = helped.take().expect("help comes before the type");
            assert_eq!(about, name, "help and type are of the same metric");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(is_name(name), "{line}");
            let family = Family { kind: kind.to_owned(), help, samples: BTreeMap::new() };
            assert!(page.insert(name.to_owned(), family).is_none(), "{name} is declared twice");
            current = Some(name.to_owned());
        } else {
            assert!(helped.is_none(), "help without a type before {line}");
            let name = current.as_ref().expect("a number belongs to a metric");
            let family = page.get_mut(name).expect("declared");
            let (sample, labels, value) = sample(line);
            let fits = match family.kind.as_str() {
                "counter" => sample == *name || sample == format!("{name}_total"),
                "gauge" => sample == *name,
                _ => ["_bucket", "_sum", "_count"].iter().any(|suffix| sample == format!("{name}{suffix}")),
            };
            assert!(fits, "{sample} is no number of {name}");
            assert!(family.kind == "gauge" || value >= 0.0, "{line}");
            assert!(family.samples.insert((sample, labels), value).is_none(), "twice: {line}");
        }
    }
    assert!(helped.is_none());
    for (name, family) in page.iter().filter(|(_, family)| family.kind == "histogram") {
        check_histogram(name, family);
    }
    page
}

fn is_name(name: &str) -> bool {
    name.bytes().enumerate().all(|(i, b)| b.is_ascii_alphabetic() || b == b'_' || (i > 0 && b.is_ascii_digit()))
}

/// One line with a number.
#[track_caller]
fn sample(line: &str) -> (String, Labels, f64) {
    let name_end = line.find(['{', ' ']).expect("a name");
    let (name, mut rest) = line.split_at(name_end);
    assert!(is_name(name), "{line}");
    let mut labels = Labels::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, value) = rest.split_once("=\"").expect("a label and its value");
            assert!(is_name(label), "{line}");
            let (value, after) = unescaped(value, line);
            assert!(labels.insert(label.to_owned(), value).is_none(), "{label} twice: {line}");
            rest = after.strip_prefix(',').unwrap_or(after);
            assert!(after.starts_with([',', '}']), "{line}");
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').expect("one space before the number");
    assert!(!value.contains(' '), "no timestamps: {line}");
    (name.to_owned(), labels, value.parse().unwrap_or_else(|error| panic!("{error}: {line}")))
}

#[track_caller]
fn unescaped<'a>(text: &'a str, line: &str) -> (String, &'a str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (value, &text[at + 1..]),
            '\\' => match chars.next().map(|(_, escaped)| escaped) {
                Some('n') => value.push('\n'),
                Some(escaped @ ('"' | '\\')) => value.push(escaped),
                other => panic!("\\{other:?} in {line}"),
            },
            char => value.push(char),
        }
    }
    panic!("no end of a label's value: {line}")
}

/// Bounds rise, counts do not fall, the last bound is infinite and counts everything.
#[track_caller]
fn check_histogram(name: &str, family: &Family) {
    let mut by_labels: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for ((sample, labels), value) in &family.samples {
        if sample.ends_with("_bucket") {
            let mut labels = labels.clone();
            let bound = labels.remove("le").expect("a bucket has its bound");
            let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("a bound") };
            by_labels.entry(labels).or_default().push((bound, *value));
        }
    }
    let sums: BTreeSet<&Labels> =
        family.samples.keys().filter(|(sample, _)| sample.ends_with("_sum")).map(|(_, labels)| labels).collect();
    assert_eq!(sums, by_labels.keys().collect::<BTreeSet<_>>(), "{name}: a sum for every histogram");
    for (labels, mut buckets) in by_labels {
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{name} {labels:?}: {buckets:?}");
        let count = family.samples[&(format!("{name}_count"), labels.clone())];
        let (bound, all) = buckets.last().copied().expect("buckets");
        assert!(bound.is_infinite(), "{name} {labels:?}");
        assert!((all - count).abs() < f64::EPSILON, "{name} {labels:?}: {all} of {count}");
    }
}
