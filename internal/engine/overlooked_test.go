package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// cases.md T18: a list that lacks an instance is no proof that it is gone. For
// each answer in which the provider overlooks the VM, at each moment.
func TestAProviderThatOverlooksTheVMLosesNothing(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			whole, _, _ := s.world()
			whole.Run(2 * time.Hour)
			for n := 1; n <= whole.Calls["describe"]; n += stride(4) {
				for _, times := range []int{1, 2} {
					w, id, old := s.world()
					w.Overlook(n, times)
					w.Run(2 * time.Hour)
					ok := t.Run("", func(t *testing.T) {
						if op := w.Op(id); op.Phase == fleet.PhaseFailed && w.VM("a") != nil && w.VM("a").ID == old && w.VM("a").Serving() {
							return // refused, and as it was
						}
						t.Logf("overlooked in describe %d, %d times", n, times)
						s.check(t, w, id, old)
					})
					if !ok {
						return
					}
				}
			}
		})
	}
}
