// Package doctor looks at a fleet before anybody acts on it: can the hosts be
// reached, are their units and rights as they must be, does every host have an
// identity that GitLab knows, are the webhooks there that its triggers wait
// for. It changes nothing and must not know HTTP, SSH or a cloud: it asks the
// engine's ports.
package doctor
