// Package cli is the command line: flags, what people read, exit statuses. It
// asks Sluice only through package client, beside a server and alone, and must
// not know the engine, the store or an adapter.
package cli
