package fleet

import (
	"errors"
	"fmt"
)

// Late is why a host refuses an order of ours: it has obeyed a higher number.
// Mostly a newer order has overtaken this one. If not, the journal is behind
// its host: restored from a backup, or the VM had another name.
type Late struct {
	Obeyed int64  // the highest number that the host remembers, until it reboots
	Of     string // the operation whose order that was
}

// Error names both.
func (l Late) Error() string {
	return fmt.Sprintf("number %d of operation %s was obeyed", l.Obeyed, l.Of)
}

// ObeyedOf yields the number that a host has obeyed if err says that an order
// came too late; 0 = err says something else.
func ObeyedOf(err error) int64 {
	late, _ := errors.AsType[Late](err)
	return late.Obeyed
}
