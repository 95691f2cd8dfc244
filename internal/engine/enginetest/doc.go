// Package enginetest is a small world for the engine's tests: in-memory ports
// over a discrete clock, whose every effect and commit is a point at which the
// engine can be made to die. It models hosts as facts/runner-host.md measured
// them, coarsely: what a model must not decide, test/e2e decides on real ones.
package enginetest
