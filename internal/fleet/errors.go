package fleet

import (
	"errors"
	"fmt"
)

// Code says what kind of failure an [Error] is. There are few, so that callers
// can act on them: an adapter maps what it saw to one of these, the API maps
// them to HTTP statuses, the CLI to exit statuses.
type Code string

// The codes. CodeUnavailable is the only one that says "the same call may work
// later"; CodeStockout and CodeQuota are its slow cousins.
const (
	CodeInvalid      Code = "invalid"
	CodeNotFound     Code = "not_found"
	CodeImageMissing Code = "image_missing"
	CodeConflict     Code = "conflict"
	CodeForbidden    Code = "forbidden"
	CodeRateLimited  Code = "rate_limited"
	CodeQuota        Code = "quota"
	CodeStockout     Code = "stockout"
	CodeUnavailable  Code = "unavailable"
	CodeCanceled     Code = "canceled"
	CodeInternal     Code = "internal"
)

// Error is a failure that a person may have to act on. Message says what
// happened and to which VM, Hint what to do next. Neither may hold a secret.
type Error struct {
	Code    Code
	Message string
	Hint    string
	Err     error // the cause; may be nil
}

// Error renders the message, its cause and the hint on one line.
func (e *Error) Error() string {
	text := e.Message
	if cause := causeText(e.Err); cause != "" {
		text += ": " + cause
	}
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// Unwrap yields the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error. Each %w verb in format becomes a cause for errors.Is.
func Errorf(code Code, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	e := &Error{Code: code, Message: wrapped.Error()}
	switch wrapped.(type) { //nolint:errorlint // asks whether this very error has causes
	case interface{ Unwrap() error }, interface{ Unwrap() []error }:
		e.Err = silent{wrapped}
	}
	return e
}

// WithHint returns the error with a sentence that says what to do next.
func (e *Error) WithHint(format string, args ...any) *Error {
	hinted := *e
	hinted.Hint = fmt.Sprintf(format, args...)
	return &hinted
}

// CodeOf yields the code of the first Error in err's chain, CodeInternal if
// there is none, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// HintOf yields the hint of the first Error in err's chain that has one.
func HintOf(err error) string {
	for err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

// Retryable says whether the same call may work later without anybody's help.
func Retryable(code Code) bool {
	switch code {
	case CodeUnavailable, CodeRateLimited, CodeStockout, CodeQuota:
		return true
	default:
		return false
	}
}

func causeText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// silent keeps a cause for errors.Is and errors.As without printing it twice:
// its text is in the message already.
type silent struct{ err error }

func (s silent) Error() string { return "" }
func (s silent) Unwrap() error { return s.err }
