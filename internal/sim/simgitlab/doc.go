// Package simgitlab is a GitLab on loopback: enough of the runner-facing and
// user-facing API to run a fleet of simulated or stand-in runners against it,
// with the traps of the real one (facts/gitlab.md section 11) and a switch for
// each fault.
//
// It owns its own truth, the ledger: what became of every job, and every call
// that could hurt the shared runner token. Tests and the demo judge Sluice by
// that ledger, never by what Sluice says of itself.
//
// It must not know Sluice: nothing of ours is imported here, so that both can
// be wrong in different ways only.
//
// # Shape
//
// A Server is an http.Handler. The GitLab API lives under BasePath + /api/v4
// and /api/graphql; a small control API for tests in another process lives
// under /sim (no authentication: bind to loopback only).
package simgitlab
