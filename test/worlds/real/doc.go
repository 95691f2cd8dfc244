// Package real is the simulation, tier B (design.md section 13): some hundred
// worlds in real time, in which nothing of Sluice is replaced. The real
// `sluice serve` runs in a process of its own, with its queue, its journal, its
// socket, SSH and HTTP, against the simulated GitLab, SSH servers that are VMs,
// and the exec provider, whose commands ask the simulated cloud. Processes are
// killed meanwhile: Sluice itself, sshd, runners; answers are lost; GitLab and
// the cloud go away.
//
// Each world is drawn from a seed. A seed gives the same plan again, and not
// the same timing: the machine's own. So a world that failed may well pass when
// it is run again; its plan, its story and the server's log are printed at once.
//
// A world is judged by its own ledgers (GitLab's, the cloud's, what was seen of
// the hosts), with the rules of tier A as far as they apply, never by Sluice's
// word. What Sluice says of itself is only compared with that.
package real
