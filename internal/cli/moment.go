package cli

import (
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// farAhead is from where on a time of day is more likely one that has just
// passed than one that is meant.
const farAhead = 12 * time.Hour

// readMoment reads a time as people write it: of the day (the next one of that
// name), with the day, or RFC 3339. The zone is now's. Errors: CodeInvalid.
func readMoment(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	for _, form := range []string{time.DateTime, "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return at, nil
		}
	}
	for _, form := range []string{time.TimeOnly, "15:04"} {
		if of, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return nextOf(of, now, text)
		}
	}
	return time.Time{}, fleet.Errorf(fleet.CodeInvalid, "--to %q is not a time", text).
		WithHint("write 15:30, '2026-11-30 15:30' or 2026-11-30T15:30:00+01:00")
}

func nextOf(of, now time.Time, text string) (time.Time, error) {
	at := time.Date(now.Year(), now.Month(), now.Day(), of.Hour(), of.Minute(), of.Second(), 0, now.Location())
	if !at.After(now) {
		at = time.Date(now.Year(), now.Month(), now.Day()+1, of.Hour(), of.Minute(), of.Second(), 0, now.Location())
	}
	if at.Sub(now) > farAhead {
		return at, fleet.Errorf(fleet.CodeInvalid, "--to %s: that is more than %s ahead, or has just passed", text, short(farAhead.String())).
			WithHint("write the day too: '%s'", at.Format("2006-01-02 15:04"))
	}
	return at, nil
}
