package doctor

import (
	"context"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// With registration individual the write token removes entries too: that it is
// dead, or may not, matters also where recover_orphans is off.
func TestAWriteTokenThatRemovesEntriesIsExaminedWithoutRecovery(t *testing.T) {
	r := examineOwn(t, func(w *ward, p *Patient) {
		w.spec.HasWriteToken, w.spec.Recovery.Orphans = true, false
		p.Fleet.Spec = w.spec
		p.WriteToken = func(context.Context) (TokenInfo, error) {
			return TokenInfo{}, fleet.Errorf(fleet.CodeForbidden, "GitLab answered 401")
		}
	})
	if len(r.Findings) == 0 {
		t.Error("the write token is refused with 401, every entry will stay, and doctor finds nothing")
	}
}
