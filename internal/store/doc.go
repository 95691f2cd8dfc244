// Package store keeps the truth in one SQLite file: operations, VMs, chores,
// the event log, idempotency keys, the host keys trusted at first use, webhook
// deliveries, and what ties callers' tokens to what they asked for.
//
// It owns the transactions: a row, its facts and whatever follows from it are
// stored together or not at all, and are on the disk when a call returns
// (synchronous=FULL; design.md section 9). It knows no step and no policy: it
// compares revisions and counts VMs, and never decides where an operation goes.
package store
