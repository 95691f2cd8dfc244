// Package config owns the configuration file: its keys, their defaults, what
// is refused and with which words, and its JSON Schema. It reads secrets when
// asked; it must not know an adapter, the engine or HTTP.
package config
