package api

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestEveryCodeHasAStatus(t *testing.T) {
	want := map[fleet.Code]int{
		fleet.CodeInvalid: 422, fleet.CodeNotFound: 404, fleet.CodeImageMissing: 422, fleet.CodeConflict: 409,
		fleet.CodeForbidden: 403, fleet.CodeRateLimited: 429, fleet.CodeQuota: 503, fleet.CodeStockout: 503,
		fleet.CodeUnavailable: 503, fleet.CodeCanceled: 409, fleet.CodeInternal: 500,
	}
	for code, expected := range want {
		p, _ := problem(fleet.Errorf(code, "x"))
		if p.Status != expected || p.Code != string(code) || p.Title != http.StatusText(expected) {
			t.Errorf("%s: %+v, want status %d", code, p, expected)
		}
	}
}

func TestAProblemTellsWhatHappenedAndTheHintApart(t *testing.T) {
	p, known := problem(fmt.Errorf("around: %w", fleet.Errorf(fleet.CodeConflict, "gcp/a is busy").WithHint("wait")))
	if !known || p.Detail != "gcp/a is busy" || p.Hint != "wait" {
		t.Errorf("%+v", p)
	}
}

func TestAnErrorOfOthersIsNotShown(t *testing.T) {
	p, known := problem(errors.New("password is hunter2"))
	if known || p.Status != 500 || p.Detail != "internal error; the server's log has it" {
		t.Errorf("%+v", p)
	}
}
