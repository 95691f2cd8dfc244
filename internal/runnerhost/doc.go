// Package runnerhost reaches the hosts of a fleet over SSH: it reads what a
// host says of its runner, and gives it the orders that stop and restore
// intake (design.md section 4).
//
// It owns the kept connections, the scripts that run on a host and the parsing
// of their answers. It decides nothing: whether a VM is drained is for
// fleet.Decide, and when to give which order for the engine. It knows no
// provider and no GitLab.
package runnerhost
