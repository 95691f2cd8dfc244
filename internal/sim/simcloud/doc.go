// Package simcloud is a cloud for one fleet: it makes and deletes machines
// with the delays, failures, lost answers and left-over disks of a real one,
// and keeps a journal of what it was asked and what it did. It implements
// engine.Machines, and provider/providertest holds it to that contract.
//
// It owns instances, disks and images. It must not know what runs in a guest:
// the world gives it a [Guest] for each instance.
package simcloud
