// Package simsystemd models the part of systemd that a drain touches: units
// and their drop-ins as they lie in the file system, daemon-reload, start and
// stop jobs with their time limits, signals, automatic restarts, and what
// systemctl prints about all this. It behaves as measured on systemd 257
// (facts/runner-host.md).
//
// It owns unit states. It must not know what the processes are: it starts them
// and signals them through a [Spawner].
package simsystemd
