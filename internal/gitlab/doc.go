// Package gitlab is the adapter to one GitLab instance: it reads what GitLab
// says of a fleet's VMs and removes the manager of one that is gone.
//
// It owns two promises. The token survives: every request, whoever makes it,
// passes [Guard], which knows the few calls that are allowed, refuses all
// others and follows no redirect. And unknown is not idle: whatever was not
// answered completely and as expected becomes an Unknown reading or an error
// with a code and a sentence a person can act on.
//
// An [Instance] is shared by all fleets on it, so that limits and pauses are
// shared too; an [Entry] is one runner entry (engine.GitLab), a [Registrar]
// speaks with the runner's own token (engine.Registrar).
//
// It must not know operations, phases or policies: it reads, others decide.
package gitlab
