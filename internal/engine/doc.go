// Package engine brings operations and chores forward: load, decide, act,
// advance. Its steps are functions over ports and an injected clock; no type
// of the queue is in their signatures, so the simulation runs these very
// functions. The queue that wakes them is in engine/queue.
//
// It owns the order of acts (intent before effect, proof before delete) and
// must not know a cloud, SSH, HTTP or SQL.
package engine
