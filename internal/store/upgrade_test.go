package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
	"gitlab.com/sluice-runners/sluice/internal/store/storetest"
)

// A journal in the field is brought up to date and forgets nothing.
func TestAJournalOfTheFirstVersionIsBroughtUpToDate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	truth, err := os.ReadFile("schema/001_truth.sql")
	must(t, err)
	clock := storetest.NewClock()
	sqlite(t, path, fmt.Sprintf(`%s; pragma user_version = 1; pragma application_id = 0x536c6365;
		insert into idempotency_keys (key, digest, answer, created_at) values ('k', 'd', '[]', %d)`, truth, clock.Now().UnixNano()))
	_, err = store.OpenReader(t.Context(), store.Options{Path: path, Clock: clock})
	mustSay(t, err, fleet.CodeConflict, "older version")

	s := openStore(t, path, clock)
	ask(t, s, "a")
	_, err = s.Insert(t.Context(), nil, control.Key{Value: "k", Digest: "another"}, nil)
	mustSay(t, err, fleet.CodeConflict, `Idempotency-Key "k"`)
	if bound, err := s.BindIDToken(t.Context(), "https://a", "1", "job 7", clock.Now().Add(time.Hour)); err != nil || bound != "job 7" {
		t.Errorf("%q, %v", bound, err)
	}
}
