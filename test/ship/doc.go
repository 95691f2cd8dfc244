// Package ship holds the tests of what is shipped: the container images, the
// systemd unit, the pipeline. They look at the files as they are and run what can
// be run; they must not know how the product works inside.
//
// They stand behind the build tag ship: the images need root, buildah and crun,
// and the build context that `make ship` makes. What Kubernetes reads is tested in
// the module kustomize, whose libraries are heavy.
package ship
