package gitlab

import (
	"net/http"
	"net/url"
)

// NewWriteGuard is the guard of a Writer.
func NewWriteGuard(base *url.URL, next http.RoundTripper) *Guard {
	return newGuard(base, next, writeRules, nil)
}
