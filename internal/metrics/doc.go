// Package metrics owns every Prometheus series of Sluice: names, labels,
// buckets, and how they follow from what was committed. Labels are fleets and
// small closed sets, never a VM or a job. It must not know HTTP clients, the
// queue or SQL: adapters call it, or are wrapped.
//
// Every series exists at 0 from the start, because increase() misses the
// first step of a series that is born at 1.
package metrics
