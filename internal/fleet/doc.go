// Package fleet holds Sluice's nouns and decisions: fleets, VMs, evidence,
// operations, the phase table, and [Decide], which says when a VM is drained.
//
// It is pure. It imports nothing of ours, does no I/O and reads no clock:
// everything it needs comes in as values. Adapters, the store and the engine
// depend on it, never the reverse.
package fleet
