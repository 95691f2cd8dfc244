// Package app composes Sluice: configuration → adapters, store, engine, queue,
// control, API, webhooks. It is the only room that knows all the others, it owns their
// order of starting and ending, and it decides nothing about a VM.
package app
