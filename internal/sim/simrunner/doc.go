// Package simrunner is a gitlab-runner process in miniature: it asks a GitLab
// for jobs over HTTP with the shared token and its own system_id, lets each
// job run as time that passes beside a container, reports the result with
// retries, and obeys signals as the real one was measured to
// (facts/runner-host.md): SIGQUIT lets jobs end and cuts the open request,
// SIGTERM ends them as runner_interrupted, SIGKILL leaves everything lying.
//
// It owns one process. It must not know systemd, SSH or Sluice.
package simrunner
