package cli

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestATimeIsReadAsPeopleWriteIt(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	now := time.Date(2026, 11, 30, 23, 50, 0, 0, zone)
	for text, want := range map[string]time.Time{
		"23:55":                     time.Date(2026, 11, 30, 23, 55, 0, 0, zone),
		"00:30":                     time.Date(2026, 12, 1, 0, 30, 0, 0, zone),
		"00:30:15":                  time.Date(2026, 12, 1, 0, 30, 15, 0, zone),
		"2026-12-02 08:00":          time.Date(2026, 12, 2, 8, 0, 0, 0, zone),
		"2026-12-02 08:00:01":       time.Date(2026, 12, 2, 8, 0, 1, 0, zone),
		"2026-12-02T08:00:00Z":      time.Date(2026, 12, 2, 8, 0, 0, 0, time.UTC),
		"2026-12-02T08:00:00-05:00": time.Date(2026, 12, 2, 13, 0, 0, 0, time.UTC),
	} {
		if got, err := readMoment(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s is %s, %v, want %s", text, got, err, want)
		}
	}
	for text, hint := range map[string]string{"soon": "write 15:30", "25:00": "write 15:30", "23:49": "write the day too: '2026-12-01 23:49'", "12:00": "write the day too"} {
		if _, err := readMoment(text, now); fleet.CodeOf(err) != fleet.CodeInvalid || !strings.Contains(fleet.HintOf(err), hint) {
			t.Errorf("%s: %v, hint %q", text, err, fleet.HintOf(err))
		}
	}
}
