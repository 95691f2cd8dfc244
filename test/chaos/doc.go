// Package chaos kills Sluice where it hurts and looks at what is left: the
// engine, its queue and its journal run in a process of their own against the
// simulated GitLab, hosts and cloud, and that process is killed (SIGKILL)
// before and after every effect and every commit of an operation's life. The
// matrix is generated from the phase table.
package chaos
