// Package kustomize renders deploy/kustomize with kustomize's own library and
// decodes it into Kubernetes' own types, unknown fields refused. It is a module of
// its own: those libraries are heavier than all of Sluice.
package kustomize
