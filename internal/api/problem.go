package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Problem is an error as a document (RFC 9457), with our code and hint.
type Problem struct {
	Type   string              `json:"type,omitempty" default:"about:blank" doc:"Always about:blank: the code tells what kind it is."`
	Title  string              `json:"title" doc:"The status in words."`
	Status int                 `json:"status" doc:"The HTTP status."`
	Detail string              `json:"detail,omitempty" doc:"What happened, and to which VM."`
	Code   string              `json:"code" doc:"What kind of failure: invalid, not_found, image_missing, conflict, forbidden, rate_limited, quota, stockout, unavailable, canceled, internal, unauthorized."`
	Hint   string              `json:"hint,omitempty" doc:"What to do next."`
	Errors []*huma.ErrorDetail `json:"errors,omitempty" doc:"What is wrong with the request, part by part."`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter (RFC 9457 section 3).
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// codeUnauthorized is the only code that is not a fleet.Code: nobody behind
// the API could meet it.
const codeUnauthorized = "unauthorized"

// status is the one place where codes become HTTP statuses.
func status(code fleet.Code) int {
	switch code {
	case fleet.CodeInvalid, fleet.CodeImageMissing:
		return http.StatusUnprocessableEntity
	case fleet.CodeNotFound:
		return http.StatusNotFound
	case fleet.CodeConflict, fleet.CodeCanceled:
		return http.StatusConflict
	case fleet.CodeForbidden:
		return http.StatusForbidden
	case fleet.CodeRateLimited:
		return http.StatusTooManyRequests
	case fleet.CodeUnavailable, fleet.CodeQuota, fleet.CodeStockout:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// codeOfStatus is for what the frameworks refuse before we see it.
func codeOfStatus(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return codeUnauthorized
	case status == http.StatusForbidden:
		return string(fleet.CodeForbidden)
	case status == http.StatusNotFound:
		return string(fleet.CodeNotFound)
	case status == http.StatusTooManyRequests:
		return string(fleet.CodeRateLimited)
	case status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return string(fleet.CodeUnavailable)
	case status >= 400 && status < 500:
		return string(fleet.CodeInvalid)
	default:
		return string(fleet.CodeInternal)
	}
}

// problem turns an error into a document. What is not a *fleet.Error may hold
// anything and is not shown; known says whether it was one.
func problem(err error) (p *Problem, known bool) {
	e, known := errors.AsType[*fleet.Error](err)
	code := fleet.CodeOf(err)
	p = &Problem{Status: status(code), Code: string(code), Detail: "internal error; the server's log has it"}
	p.Title = http.StatusText(p.Status)
	if known {
		plain := *e
		plain.Hint = ""
		p.Detail, p.Hint = plain.Error(), fleet.HintOf(err)
	}
	return p, known
}

// huma makes its own errors (a body that does not fit its schema) with this
// function; there is one for the whole process (huma.NewError).
func init() { //nolint:gochecknoinits // huma's only way
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		p := &Problem{Status: status, Title: http.StatusText(status), Detail: message, Code: codeOfStatus(status)}
		for _, err := range errs {
			var detail *huma.ErrorDetail
			if errors.As(err, &detail) {
				p.Errors = append(p.Errors, &huma.ErrorDetail{Message: detail.Message, Location: detail.Location})
			} else if err != nil {
				p.Errors = append(p.Errors, &huma.ErrorDetail{Message: err.Error()})
			}
		}
		return p
	}
}

// write renders a problem outside of huma.
func write(c echo.Context, p *Problem) {
	body, err := json.Marshal(p)
	if err != nil { // a Problem can be rendered
		body = nil
	}
	_ = c.Blob(p.Status, p.ContentType(""), body) // the caller is gone
}
