// Package component tests templates/ as a pipeline uses it: the text by a lint
// of our own, which knows what GitLab refuses, and with the build tag component
// in pipelines of gitlab-ci-local, whose jobs run the real binary against a
// controller on a simulated fleet.
package component
