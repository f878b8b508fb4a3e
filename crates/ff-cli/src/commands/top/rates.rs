//! Events per second, by lane.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ff_api::events::Event;
use tokio::time::Instant;

use crate::commands::lane::rows::Name;

/// Rates are means over so many seconds.
const WINDOW: usize = 10;

/// Events per second, by what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    pub submitted: f64,
    pub completed: f64,
    pub failed: f64,
    pub retried: f64,
}

/// Counts of the last seconds, by lane.
#[derive(Default)]
pub struct Rates {
    began: Option<Instant>,
    seconds: VecDeque<(Instant, BTreeMap<Name, Rate>)>,
}

impl Rates {
    /// Counts an event.
    pub fn count(&mut self, event: &Event, now: Instant) {
        self.began.get_or_insert(now);
        let lane = (event.namespace.clone().unwrap_or_default(), event.lane.clone().unwrap_or_default());
        if self.seconds.back().is_none_or(|(from, _)| now - *from >= Duration::from_secs(1)) {
            self.seconds.push_back((now, BTreeMap::new()));
        }
        let Some((_, counts)) = self.seconds.back_mut() else { return };
        let count = counts.entry(lane).or_default();
        match event.r#type.as_str() {
            "execution.submitted" => count.submitted += 1.0,
            "execution.completed" => count.completed += 1.0,
            "execution.failed" => count.failed += 1.0,
            "execution.retried" => count.retried += 1.0,
            _ => {}
        }
    }

    /// The means of the last seconds.
    pub fn means(&mut self, now: Instant) -> BTreeMap<Name, Rate> {
        let window = Duration::from_secs(WINDOW as u64);
        while self.seconds.front().is_some_and(|(from, _)| now - *from > window) {
            self.seconds.pop_front();
        }
        let over = self.began.map_or(1.0, |began| (now - began).min(window).as_secs_f64().max(1.0));
        let mut means: BTreeMap<Name, Rate> = BTreeMap::new();
        for (lane, count) in self.seconds.iter().flat_map(|(_, counts)| counts) {
            let mean = means.entry(lane.clone()).or_default();
            mean.submitted += count.submitted / over;
            mean.completed += count.completed / over;
            mean.failed += count.failed / over;
            mean.retried += count.retried / over;
        }
        means
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_means_over_the_last_seconds() {
        let mut rates = Rates::default();
        let began = Instant::now();
        let event = r#"{"cursor":"c","type":"execution.completed","at":0,"namespace":"default","lane":"mail","kind":"k","data":{}}"#;
        let event: Event = serde_json::from_str(event).expect("an event");
        for second in 0..4 {
            for _ in 0..5 {
                rates.count(&event, began + Duration::from_secs(second));
            }
        }
        let lane = ("default".to_owned(), "mail".to_owned());
        assert_eq!(rates.means(began + Duration::from_secs(4))[&lane].completed, 5.0);
        assert_eq!(rates.means(began + Duration::from_secs(8))[&lane].completed, 2.5);
        assert!(rates.means(began + Duration::from_secs(30)).is_empty());
    }
}
