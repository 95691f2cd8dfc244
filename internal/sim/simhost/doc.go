// Package simhost is a runner VM on loopback: an SSH server whose shell runs
// the very scripts that come in, with a POSIX interpreter, over a file system
// in memory, a model of systemd, a process table and a container store. Its
// unit runs a simulated gitlab-runner that is joined to a GitLab.
//
// Nothing of the real machine is touched: commands are handlers of this
// package; only pure filters (sed, awk, grep, …) run as real processes, on
// standard input alone.
//
// It owns one incarnation of one VM, over its reboots. It must not know Sluice.
package simhost
