package providertest

import (
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

var preparing = []contract{
	{"prepare yields the exact image and keeps it when asked again", prepareIsExact},
	{"prepare changes nothing", prepareChangesNothing},
	{"a missing image is said before anything is touched (T108)", imageMissing},
	{"check accepts what was prepared and refuses an image that is gone (T107)", checkLooksAgain},
	{"a name that no cloud takes is invalid and not to be repeated (T92)", badNameIsInvalid},
}

func prepareIsExact(t *testing.T, s Setup) {
	first, err := s.Machines.Prepare(t.Context(), "vm-1", s.Image)
	if err != nil {
		t.Fatal(err)
	}
	if first.Image != s.Exact {
		t.Fatalf("image %q was resolved to %q, want %q", s.Image, first.Image, s.Exact)
	}
	again, err := s.Machines.Prepare(t.Context(), "vm-1", first.Image)
	if err != nil || again.Image != first.Image {
		t.Fatalf("the exact image %q was resolved to %q, error %v", first.Image, again.Image, err)
	}
}

func prepareChangesNothing(t *testing.T, s Setup) {
	id := s.World.Appear(t, "vm-1", nil)
	for _, vm := range []string{"vm-1", "vm-2"} {
		if _, err := s.Machines.Prepare(t.Context(), vm, s.Image); err != nil {
			t.Fatal(err)
		}
	}
	wantOne(t, s, "vm-1", id)
	if list := describe(t, s, "vm-2"); len(list) != 0 {
		t.Fatalf("prepare made %s", ids(list))
	}
}

func imageMissing(t *testing.T, s Setup) {
	needImages(t, s)
	_, err := s.Machines.Prepare(t.Context(), "vm-1", s.NoImage)
	wantCode(t, "prepare with a missing image", err, fleet.CodeImageMissing)
}

func checkLooksAgain(t *testing.T, s Setup) {
	needImages(t, s)
	prepared, err := s.Machines.Prepare(t.Context(), "vm-1", s.Image)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Machines.Check(t.Context(), "vm-1", prepared); err != nil {
		t.Fatalf("check of what was just prepared: %v", err)
	}
	prepared.Image = s.NoImage
	wantCode(t, "check of an image that is gone", s.Machines.Check(t.Context(), "vm-1", prepared), fleet.CodeImageMissing)
}

func badNameIsInvalid(t *testing.T, s Setup) {
	for _, name := range []string{"", "../vm", "-rf", "a b", "vm;id", "vm\n1"} {
		_, err := s.Machines.Prepare(t.Context(), name, s.Image)
		wantCode(t, "prepare of the name "+name, err, fleet.CodeInvalid)
		if fleet.Retryable(fleet.CodeOf(err)) {
			t.Errorf("the error for %q invites a repeat", name)
		}
	}
}
