// Package storetest says what a store of the truth must do, as tests that any
// implementation runs: the SQLite store all of them, the store in memory of
// engine/enginetest the engine's half.
//
// It owns the contract of engine.Store, control.Store and the host keys. It
// must not know how a store stores.
package storetest
