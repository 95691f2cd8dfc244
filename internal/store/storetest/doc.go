// Package storetest says what a store of the truth must do, as tests that any
// implementation runs: the SQLite store here, the simulation's in memory.
//
// It owns the contract of engine.Store, control.Store and the host keys. It
// must not know how a store stores.
package storetest
