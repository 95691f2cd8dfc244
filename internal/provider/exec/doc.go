// Package exec is the provider for any cloud that a command can reach: it
// runs argv arrays from the configuration with one JSON document on stdin and
// reads one from stdout. docs/providers/exec.md is its protocol.
//
// Reading verbs run within 20 s. Create and delete may take an hour: they run
// in sessions of their own, kept on disk, so that neither a restart nor a
// crash of Sluice ends or repeats them.
//
// It owns processes, their session directories and the wire format. It must
// not know what a command does, nor phases, GitLab or hosts.
package exec
