// Package sim composes a small world: a GitLab on loopback, a cloud of VMs
// that are SSH servers with runners on them, and pipelines that keep them
// busy. The demo and the end-to-end tests run Sluice on it, and judge it by
// the world's own ledger, never by what Sluice says of itself.
//
// It owns the composition and the sabotage that proves the ledger's worth. It
// must not know the engine beyond its ports.
package sim
