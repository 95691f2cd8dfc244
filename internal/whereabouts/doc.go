// Package whereabouts finds the VM that a CI job runs on, so that a job which
// asks to drain its own VM is told (design.md section 7): first by GitLab's
// word on the job, else by the job's container on a host. It reads and changes
// nothing. It must not know who asks, HTTP or an adapter.
package whereabouts
