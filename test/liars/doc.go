// Package liars puts the engine's real steps and chores and the real GitLab
// client before a GitLab that misbehaves: late, cut short, silent, wrong. The
// GitLab is internal/sim/simgitlab, the hosts and the cloud are enginetest's,
// on a discrete clock. Only tests are here.
package liars
