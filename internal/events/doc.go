// Package events follows the event log for many at once: one look into the
// journal serves every follower, and each reads on at its own speed, from what
// was looked up last or from the journal itself. A follower that is slow holds
// nobody up and loses nothing.
//
// It must not know HTTP, nor who may read what.
package events
