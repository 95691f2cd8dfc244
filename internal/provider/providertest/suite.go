package providertest

import "testing"

// Run runs the contract. setup is called once per case and must yield a fresh
// world each time; what it opens, it closes with t.Cleanup.
func Run(t *testing.T, setup func(t *testing.T) Setup) {
	t.Helper()
	for _, group := range [][]contract{reading, preparing, creating, deleting, failing} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) { c.run(t, setup(t)) })
		}
	}
}

// contract is one behaviour; its name says what must be true, with the number
// of the public failure that taught it.
type contract struct {
	name string
	run  func(t *testing.T, s Setup)
}
