// Package hooks is the door for GitLab's webhooks: who sent a delivery, what it
// says, which triggers it matches, and what they come to.
//
// A delivery is stored with its work in one transaction and then answered; a
// step of the queue works it off, and asks control for operations under keys
// that derive from the delivery, so that a repeat of anything asks for nothing
// twice. It must not know how an operation is done, nor SQL, River or a cloud.
package hooks
