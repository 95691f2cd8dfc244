// Package machines is the cloud of the end-to-end tests: worlds of Debian machines
// booted by systemd-nspawn, each a snapshot of the golden tree with an address on a
// bridge that nothing leaves.
//
// A machine can be created, described, listed, deleted, rebooted, cut from power,
// frozen and cut from the network. Its id is new for each creation, so a name may live
// on while the machine changes. What is known about a world lies in its directory under
// [StateDir], so that any process may pick it up, also after the one that made it died.
//
// It must not know Sluice, its provider protocol, or what GitLab says.
package machines
