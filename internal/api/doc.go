// Package api is the HTTP door: routes, their OpenAPI 3.1 document, problem
// documents (RFC 9457), and who is asking. It hands intents to control and
// reads the store; it must not know a cloud, SSH or SQL, and decides nothing
// about a VM.
package api
