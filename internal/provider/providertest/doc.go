// Package providertest is the contract of engine.Machines as tests. A
// provider's own test gives it a [World], the cloud behind the provider or a
// fake of it, and runs [Run].
//
// It owns what every provider must promise. It must not know any of them.
package providertest
