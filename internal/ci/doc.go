// Package ci is what the job of the CI/CD component runs (templates/recreate.yml):
// it asks a controller to recreate VMs, follows until they serve, and leaves
// what a pipeline keeps: a job log with a section for each VM, JUnit, dotenv
// and annotations.
//
// It owns how such a job looks, waits and ends. It must not know the command
// line, the configuration or the engine: it knows a controller only through
// its HTTP API, and trusts no text that comes from there to be fit for a log.
package ci
