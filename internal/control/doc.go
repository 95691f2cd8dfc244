// Package control is the only place that accepts an intent: ask, cancel,
// resume. The API, the webhooks and later pages go through it. It checks
// the intent against the fleet, writes it, and wakes the engine; it does no
// work on a VM itself and must not know HTTP, SSH or a cloud.
package control
