// Package client speaks the HTTP API: the generated client, and the ways to a
// server: a URL with a token, the Unix socket, or a handler in this process. It
// follows the journal across lost streams and restarts of the server. The CLI and
// the job of the CI/CD component know Sluice only through it. It must not know what is behind the
// API: of the API itself only how to name a caller in this process.
//
// gen.go is generated from openapi-3.0.json, which is the API's own OpenAPI
// 3.1 document stepped down to what the generator reads; a test generates both
// anew (go test ./internal/client -update).
package client
