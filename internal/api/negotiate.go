package api

import (
	"mime"
	"strconv"
	"strings"
)

// form is how events go out.
type form int

const (
	asJSON form = iota
	asSSE
	asNDJSON
)

const (
	typeSSE    = "text/event-stream"
	typeNDJSON = "application/x-ndjson"
)

// negotiate picks the form that an Accept header wants most, the first of
// equals (RFC 9110, 12.5.1). Who does not ask for a stream by name gets JSON.
func negotiate(accept string) form {
	best, chosen := 0.0, asJSON
	for part := range strings.SplitSeq(accept, ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		weight := 1.0
		if q, ok := params["q"]; ok {
			if weight, err = strconv.ParseFloat(q, 64); err != nil || weight < 0 || weight > 1 {
				continue
			}
		}
		if f, ok := formOf(kind); ok && weight > best {
			best, chosen = weight, f
		}
	}
	return chosen
}

func formOf(kind string) (form, bool) {
	switch kind {
	case typeSSE:
		return asSSE, true
	case typeNDJSON, "application/ndjson", "application/jsonl":
		return asNDJSON, true
	case "application/json", "application/*", "*/*":
		return asJSON, true
	default:
		return 0, false
	}
}
