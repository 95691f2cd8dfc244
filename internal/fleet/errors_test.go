package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestErrorSaysWhatHappenedAndWhatToDo(t *testing.T) {
	err := Errorf(CodeUnavailable, "shared/runner-01: no answer: %w", io.ErrUnexpectedEOF).WithHint("look at port %d", 22)
	if got, want := err.Error(), "shared/runner-01: no answer: unexpected EOF (look at port 22)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
}

func TestErrorKeepsEveryCause(t *testing.T) {
	err := Errorf(CodeInternal, "%w after %w", io.ErrClosedPipe, context.Canceled)
	if !errors.Is(err, io.ErrClosedPipe) || !errors.Is(err, context.Canceled) {
		t.Errorf("a cause of %v is lost", err)
	}
	if got, want := err.Error(), "io: read/write on closed pipe after context canceled"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := Errorf(CodeInvalid, "nothing behind it"); errors.Unwrap(err) != nil {
		t.Errorf("a cause from nowhere: %v", errors.Unwrap(err))
	}
}

func TestErrorLiteralPrintsItsCauseOnce(t *testing.T) {
	err := &Error{Code: CodeInternal, Message: "disk", Err: io.ErrShortWrite}
	if got, want := err.Error(), "disk: short write"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCodeIsTheOutermostOne(t *testing.T) {
	inner := Errorf(CodeQuota, "no CPUs left")
	for _, test := range []struct {
		err  error
		want Code
	}{
		{nil, ""},
		{errors.New("somebody's"), CodeInternal},
		{inner, CodeQuota},
		{fmt.Errorf("creating: %w", inner), CodeQuota},
		{Errorf(CodeUnavailable, "later: %w", inner), CodeUnavailable},
	} {
		if got := CodeOf(test.err); got != test.want {
			t.Errorf("%v: got %q, want %q", test.err, got, test.want)
		}
	}
}

func TestHintIsFoundBehindErrorsWithoutOne(t *testing.T) {
	hinted := Errorf(CodeForbidden, "sudo refuses").WithHint("install the sudoers file")
	for _, test := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("somebody's"), ""},
		{Errorf(CodeInvalid, "no hint"), ""},
		{hinted, "install the sudoers file"},
		{fmt.Errorf("preflight: %w", Errorf(CodeForbidden, "host: %w", hinted)), "install the sudoers file"},
		{Errorf(CodeForbidden, "host: %w", hinted).WithHint("the outer one"), "the outer one"},
	} {
		if got := HintOf(test.err); got != test.want {
			t.Errorf("%v: got %q, want %q", test.err, got, test.want)
		}
	}
}

func TestHintLeavesTheOriginalAlone(t *testing.T) {
	plain := Errorf(CodeInvalid, "x")
	if _ = plain.WithHint("y"); plain.Hint != "" {
		t.Errorf("the original has the hint %q", plain.Hint)
	}
}

func TestOnlyWhatMayPassByItselfIsRetried(t *testing.T) {
	want := map[Code]bool{CodeUnavailable: true, CodeRateLimited: true, CodeStockout: true, CodeQuota: true}
	for _, code := range []Code{
		CodeInvalid, CodeNotFound, CodeImageMissing, CodeConflict, CodeForbidden, CodeRateLimited,
		CodeQuota, CodeStockout, CodeUnavailable, CodeCanceled, CodeInternal, "",
	} {
		if got := Retryable(code); got != want[code] {
			t.Errorf("%q: retried %t, want %t", code, got, want[code])
		}
	}
}
