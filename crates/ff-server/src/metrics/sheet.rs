//! Writes numbers that were not counted here, metric by metric.

use std::fmt;

use ff_engine::inventory::Durations;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::table::{Kind, Metric};

/// A page under the pen.
pub struct Sheet<'a, 'b>(pub &'a mut DescriptorEncoder<'b>);

/// The values of a metric's labels, in their order.
type Values<'v> = &'v [&'v str];

impl Sheet<'_, '_> {
    /// A counter with all its numbers.
    pub fn counter<const N: usize>(
        &mut self,
        metric: &Metric,
        numbers: impl IntoIterator<Item = ([String; N], i64)>,
    ) -> fmt::Result {
        self.write(metric, numbers, |encoder, number: &i64| {
            encoder.encode_counter::<NoLabelSet, u64, f64>(&u64::try_from(*number).unwrap_or(0), None)
        })
    }

    /// A gauge with all its numbers.
    pub fn gauge<const N: usize>(
        &mut self,
        metric: &Metric,
        numbers: impl IntoIterator<Item = ([String; N], i64)>,
    ) -> fmt::Result {
        self.write(metric, numbers, |encoder, number: &i64| encoder.encode_gauge(number))
    }

    /// A gauge of times, given in milliseconds.
    pub fn seconds<const N: usize>(
        &mut self,
        metric: &Metric,
        times: impl IntoIterator<Item = ([String; N], i64)>,
    ) -> fmt::Result {
        self.write(metric, times, |encoder, ms: &i64| encoder.encode_gauge(&in_seconds(*ms)))
    }

    /// A histogram of durations.
    pub fn durations<const N: usize>(
        &mut self,
        metric: &Metric,
        bounds_ms: &[i64],
        durations: impl IntoIterator<Item = ([String; N], Durations)>,
    ) -> fmt::Result {
        let bounds: Vec<f64> = bounds_ms.iter().map(|ms| in_seconds(*ms)).chain([f64::MAX]).collect();
        self.write(metric, durations, |encoder, durations: &Durations| {
            let count = |n: i64| u64::try_from(n).unwrap_or(0);
            let within = durations.within.iter().copied().map(count).chain(std::iter::repeat(0));
            let buckets: Vec<(f64, u64)> = bounds.iter().copied().zip(within).collect();
            let sum = count(durations.within.iter().sum());
            encoder.encode_histogram::<NoLabelSet>(in_seconds(durations.sum_ms), sum, &buckets, None)
        })
    }

    fn write<const N: usize, V>(
        &mut self,
        metric: &Metric,
        numbers: impl IntoIterator<Item = ([String; N], V)>,
        one: impl Fn(&mut MetricEncoder<'_>, &V) -> fmt::Result,
    ) -> fmt::Result {
        debug_assert_eq!(metric.labels.len(), N, "{}", metric.family);
        let kind = match metric.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
        };
        let help = format!("{}.", metric.help);
        let mut encoder = self.0.encode_descriptor(metric.family, &help, None, kind)?;
        for (values, number) in numbers {
            let values = values.each_ref().map(String::as_str);
            if N == 0 {
                one(&mut encoder, &number)?;
            } else {
                one(&mut encoder.encode_family(&labels(metric, &values))?, &number)?;
            }
        }
        Ok(())
    }
}

/// The crate writes values as they are; users name lanes and dimensions.
fn labels(metric: &Metric, values: Values<'_>) -> Vec<(&'static str, String)> {
    let escaped = |value: &&str| value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    metric.labels.iter().copied().zip(values.iter().map(escaped)).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a millisecond in 285 000 years does not matter")]
fn in_seconds(ms: i64) -> f64 {
    ms as f64 / 1_000.0
}
