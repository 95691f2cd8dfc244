// Package alerts tests the alert rules of deploy/prometheus: that they, the
// runbooks, the metrics and the commands are in step, and, under the build tag
// alerts, with the real promtool, Prometheus and Alertmanager. It must not know
// how a series is counted.
package alerts

//go:generate go test -run TestTheAlertsPageIsInStep -update .
